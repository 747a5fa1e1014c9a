// Requests to the server, or to the report that this page is part of.
import { parseExact } from "./exact";
import { Pace } from "./pace";
import { RequestScheduler } from "./request_scheduler";

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

/** Source of responses. */
export interface Transport {
    get(path: string, accept: string, signal?: AbortSignal): Promise<ArrayBuffer>;
    put(path: string, body: string): Promise<void>;
    /** A report contains only the responses stored in it when it was created. */
    readonly isReport: boolean;
}

/** URL of a request; equal parameters in any order give the same URL. */
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
/** Cached responses, so that Back shows the previous page at once. */
const KEPT = 200;

export class Api {
    readonly #kept = new Map<string, unknown>();
    /** Of the state of a live recording that is shown. */
    readonly pace = new Pace();

    constructor(readonly transport: Transport) {}

    get isReport(): boolean {
        return this.transport.isReport;
    }

    /** A cached response. */
    kept(endpoint: string, parameters: Parameters): unknown {
        return this.#kept.get(address(endpoint, parameters));
    }

    async json(endpoint: string, parameters: Parameters, signal?: AbortSignal): Promise<unknown> {
        const place = address(endpoint, parameters);
        const known = this.#kept.get(place);
        if (known !== undefined) return known;
        const request = this.transport.get(place, JSON_FORM, signal);
        // The list of recordings shows whether there is a newer state.
        const bytes = await (endpoint === "recordings" ? request : this.pace.during(request));
        const answer = parseExact(new TextDecoder().decode(bytes));
        this.#keep(place, answer);
        return answer;
    }

    async bytes(endpoint: string, parameters: Parameters, accept: string, signal?: AbortSignal): Promise<ArrayBuffer> {
        return this.pace.during(this.transport.get(address(endpoint, parameters), accept, signal));
    }

    put(endpoint: string, parameters: Parameters, json: string): Promise<void> {
        return this.transport.put(address(endpoint, parameters), json);
    }

    /** Drops cached responses of an endpoint that changes on the server, or all of them. */
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

/** Removes the token from the address bar, where bystanders could read it. */
export function takeToken(): string {
    const found = /(?:^#|&)token=([^&]+)/.exec(location.hash);
    if (found?.[1]) {
        sessionStorage.setItem(TOKEN, decodeURIComponent(found[1]));
        history.replaceState(null, "", location.pathname + location.search);
    }
    return sessionStorage.getItem(TOKEN) ?? "";
}

/** Interval between retries while the server is still building charts, ms. */
const RETRY_MS = 700;

export class Http implements Transport {
    readonly isReport = false;
    readonly #scheduler = new RequestScheduler();

    constructor(private readonly token: string) {}

    get(path: string, accept: string, signal?: AbortSignal): Promise<ArrayBuffer> {
        return this.#scheduler.run(path, () => this.#get(path, accept, signal));
    }

    async #get(path: string, accept: string, signal?: AbortSignal): Promise<ArrayBuffer> {
        for (;;) {
            const response = await this.#fetch(path, { headers: { Accept: accept }, ...(signal ? { signal } : {}) });
            if (response.ok) return response.arrayBuffer();
            const failure = await failureOf(response);
            // 503: charts are still being built. For a missing lake it is final.
            if (failure.status !== 503 || path.startsWith("fleet")) throw failure;
            await pause(RETRY_MS, signal);
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
            throw new ApiError("whyslow serve does not respond", 0, "start it again and open the URL that it prints");
        }
    }
}

async function failureOf(response: Response): Promise<ApiError> {
    let message = `${response.status} ${response.statusText}`;
    let hint: string | null = response.status === 401 ? "open the URL that whyslow serve printed, including its token" : null;
    try {
        const body: unknown = await response.json();
        if (typeof body === "object" && body !== null) {
            if ("error" in body && typeof body.error === "string") message = body.error;
            if ("hint" in body && typeof body.hint === "string") hint = body.hint;
        }
    } catch {
        // Not a response of whyslow: only the status is known.
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
