// Sends chart requests first: a table of a hundred million rows keeps all CPUs of the server busy for a second,
// while the tiles for the charts run a hundredth of that.

/** Chart requests may follow each other after a rendering: tables wait until none came for this long. */
const CALM_MS = 60;
/** Upper limit of that wait, so that slow charts do not starve tables. */
const PATIENCE_MS = 1500;
const FIRST = /^(recordings|tracks|tile|series|wakeups|search|notes)\b/;

export class RequestScheduler {
    #busy = 0;
    #calmSince = 0;

    constructor(
        private readonly now: () => number = () => performance.now(),
        private readonly pause: (ms: number) => Promise<void> = (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
    ) {}

    /** Sends a request: those of charts at once, others when no chart request is in flight. */
    async run<T>(path: string, send: () => Promise<T>): Promise<T> {
        if (!FIRST.test(path)) {
            await this.#calm();
            return send();
        }
        this.#busy += 1;
        try {
            return await send();
        } finally {
            this.#busy -= 1;
            this.#calmSince = this.now();
        }
    }

    async #calm(): Promise<void> {
        const end = this.now() + PATIENCE_MS;
        // Lets the chart requests of the same rendering go first, in whatever order they are made.
        await this.pause(0);
        while (this.now() < end) {
            if (this.#busy === 0 && this.now() - this.#calmSince >= CALM_MS) return;
            await this.pause(CALM_MS / 4);
        }
    }
}
