// Decides when a page shows the next state of a live recording. A new state cancels the requests of the one
// before: on a busy machine, where an explanation takes longer than a state lasts, a page would never finish.

/** Upper limit of the wait for requests that do not end, ms. */
const HELD_MS = 60_000;

export class Pace {
    #pending = 0;
    #begun = 0;
    #ended = 0;
    /** How long the last requests took. */
    #took = 0;
    /** Since when a newer state exists. */
    #held: number | null = null;

    constructor(private readonly now: () => number = () => performance.now()) {}

    /** Requests whose responses belong to the state that is shown. */
    async during<T>(request: Promise<T>): Promise<T> {
        if (this.#pending === 0) this.#begun = this.now();
        this.#pending += 1;
        try {
            return await request;
        } finally {
            this.#pending -= 1;
            if (this.#pending === 0) {
                this.#ended = this.now();
                this.#took = this.#ended - this.#begun;
            }
        }
    }

    /**
     * Whether the next state, which exists, may be shown: all requests have ended, and as much time as they
     * took has passed since then, so that the server is idle half of the time.
     */
    isReady(): boolean {
        const now = this.now();
        this.#held ??= now;
        const hasRested = this.#pending === 0 && now - this.#ended >= this.#took;
        if (!hasRested && now - this.#held < HELD_MS) return false;
        this.#held = null;
        return true;
    }
}
