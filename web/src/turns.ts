// Charts first: a table of a hundred million rows keeps all processors of the server busy for a second, and
// the tiles that people look at in the meantime need a hundredth of that.

/** Between two of these a page renders; then the next ones are on their way. */
const CALM_MS = 60;
/** However long charts take, tables have their turn. */
const PATIENCE_MS = 1500;
const FIRST = /^(recordings|tracks|tile|series|wakeups|search|notes)\b/;

export class Turns {
    #busy = 0;
    #calmSince = 0;

    constructor(
        private readonly now: () => number = () => performance.now(),
        private readonly pause: (ms: number) => Promise<void> = (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
    ) {}

    /** Asks when it is this question's turn. */
    async take<T>(path: string, ask: () => Promise<T>): Promise<T> {
        if (!FIRST.test(path)) {
            await this.#calm();
            return ask();
        }
        this.#busy += 1;
        try {
            return await ask();
        } finally {
            this.#busy -= 1;
            this.#calmSince = this.now();
        }
    }

    async #calm(): Promise<void> {
        const end = this.now() + PATIENCE_MS;
        // What the same rendering asks for comes first, whatever the order.
        await this.pause(0);
        while (this.now() < end) {
            if (this.#busy === 0 && this.now() - this.#calmSince >= CALM_MS) return;
            await this.pause(CALM_MS / 4);
        }
    }
}
