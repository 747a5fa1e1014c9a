// Questions to whoever holds the recording: the server, or the report this page is part of.
import { parseExact } from "./exact";
import { Turns } from "./turns";

export type Parameters = Readonly<Record<string, string | number | boolean | undefined>>;

export class ApiError extends Error {
    constructor(
        message: string,
        readonly status: number,
        readonly hint: string | null = null,
    ) {
        super(message);
    }
}

/** Where answers come from. */
export interface Transport {
    get(path: string, accept: string, signal?: AbortSignal): Promise<ArrayBuffer>;
    put(path: string, body: string): Promise<void>;
    /** A report, which holds the answers it was made with and no others. */
    readonly isReport: boolean;
}

/** The same question always has the same address. */
export function address(endpoint: string, parameters: Parameters): string {
    const words = new URLSearchParams();
    for (const key of Object.keys(parameters).sort()) {
        const value = parameters[key];
        if (value !== undefined && value !== "" && value !== false) words.set(key, String(value));
    }
    const text = words.toString();
    return text ? `${endpoint}?${text}` : endpoint;
}

const JSON_FORM = "application/json";
export const ARROW_FORM = "application/vnd.apache.arrow.stream";
/** Answers kept, so that going back shows at once what was there. */
const KEPT = 200;

export class Api {
    readonly #kept = new Map<string, unknown>();

    constructor(readonly transport: Transport) {}

    get isReport(): boolean {
        return this.transport.isReport;
    }

    /** An answer that is there already. */
    kept(endpoint: string, parameters: Parameters): unknown {
        return this.#kept.get(address(endpoint, parameters));
    }

    async json(endpoint: string, parameters: Parameters, signal?: AbortSignal): Promise<unknown> {
        const place = address(endpoint, parameters);
        const known = this.#kept.get(place);
        if (known !== undefined) return known;
        const bytes = await this.transport.get(place, JSON_FORM, signal);
        const answer = parseExact(new TextDecoder().decode(bytes));
        this.#keep(place, answer);
        return answer;
    }

    async bytes(endpoint: string, parameters: Parameters, accept: string, signal?: AbortSignal): Promise<ArrayBuffer> {
        return this.transport.get(address(endpoint, parameters), accept, signal);
    }

    put(endpoint: string, parameters: Parameters, json: string): Promise<void> {
        return this.transport.put(address(endpoint, parameters), json);
    }

    /** What changes by itself is asked again. */
    forget(endpoint?: string): void {
        for (const place of [...this.#kept.keys()]) {
            if (!endpoint || place === endpoint || place.startsWith(`${endpoint}?`)) this.#kept.delete(place);
        }
    }

    #keep(place: string, answer: unknown): void {
        this.#kept.delete(place);
        this.#kept.set(place, answer);
        const [oldest] = this.#kept.keys();
        if (this.#kept.size > KEPT && oldest !== undefined) this.#kept.delete(oldest);
    }
}

const TOKEN = "whyslow.token";

/** Takes the token out of the address bar, where others could read it over a shoulder. */
export function takeToken(): string {
    const found = /(?:^#|&)token=([^&]+)/.exec(location.hash);
    if (found?.[1]) {
        sessionStorage.setItem(TOKEN, decodeURIComponent(found[1]));
        history.replaceState(null, "", location.pathname + location.search);
    }
    return sessionStorage.getItem(TOKEN) ?? "";
}

/** How often an answer that is being prepared is asked for, ms. */
const AGAIN_MS = 700;

export class Http implements Transport {
    readonly isReport = false;
    readonly #turns = new Turns();

    constructor(private readonly token: string) {}

    get(path: string, accept: string, signal?: AbortSignal): Promise<ArrayBuffer> {
        return this.#turns.take(path, () => this.#get(path, accept, signal));
    }

    async #get(path: string, accept: string, signal?: AbortSignal): Promise<ArrayBuffer> {
        for (;;) {
            const response = await this.#fetch(path, { headers: { Accept: accept }, ...(signal ? { signal } : {}) });
            if (response.ok) return response.arrayBuffer();
            const failure = await failureOf(response);
            // Charts are being built then; of a lake that is not there it is the last word.
            if (failure.status !== 503 || path.startsWith("fleet")) throw failure;
            await pause(AGAIN_MS, signal);
        }
    }

    async put(path: string, body: string): Promise<void> {
        const headers = { "Content-Type": JSON_FORM };
        const response = await this.#fetch(path, { method: "PUT", headers, body });
        if (!response.ok) throw await failureOf(response);
    }

    async #fetch(path: string, init: RequestInit & { headers: Record<string, string> }): Promise<Response> {
        const headers = { ...init.headers, Authorization: `Bearer ${this.token}` };
        try {
            return await fetch(`api/v1/${path}`, { ...init, headers, credentials: "omit", redirect: "error" });
        } catch (error) {
            if (error instanceof DOMException && error.name === "AbortError") throw error;
            throw new ApiError("whyslow serve does not answer", 0, "start it again, and open the address it prints");
        }
    }
}

async function failureOf(response: Response): Promise<ApiError> {
    let message = `${response.status} ${response.statusText}`;
    let hint: string | null = response.status === 401 ? "open the address that whyslow serve printed, with its token" : null;
    try {
        const told: unknown = await response.json();
        if (typeof told === "object" && told !== null) {
            if ("error" in told && typeof told.error === "string") message = told.error;
            if ("hint" in told && typeof told.hint === "string") hint = told.hint;
        }
    } catch {
        // Not from us: the status has to do.
    }
    return new ApiError(message, response.status, hint);
}

function pause(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
        const timer = setTimeout(resolve, ms);
        signal?.addEventListener("abort", () => {
            clearTimeout(timer);
            reject(new DOMException("no longer wanted", "AbortError"));
        });
    });
}
