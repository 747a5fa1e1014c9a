// A report stores responses, which pages request from it as from a server.
import { ApiError, type Transport } from "./api";
import { parseExact } from "./exact";
import { parseOffset } from "./times";
import type { Explanation } from "./types";
import { duration } from "./units";

/** The compressed data in the page. */
interface Contents {
    /** Responses by URL. */
    readonly answers: Readonly<Record<string, unknown>>;
    /** Tiles by `track/level/index`, in base64. */
    readonly tiles: Readonly<Record<string, string>>;
    readonly version: string;
    /** Window of the report, as in request parameters; null for the whole recording. */
    readonly window: string | null;
}

const OTHER_WINDOW = "for the whole window of the report, which does not include this window alone";

/** Id of the element with the data. */
const PLACE = "whyslow-report";

export function reportElement(): HTMLElement | null {
    return document.getElementById(PLACE);
}

export async function openIsland(element: HTMLElement): Promise<Island> {
    const packed = fromBase64(element.textContent?.trim() ?? "");
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Island(parseExact(await new Response(stream).text()) as Contents);
}

function fromBase64(text: string): Uint8Array<ArrayBuffer> {
    const letters = atob(text);
    const bytes = new Uint8Array(letters.length);
    for (let at = 0; at < letters.length; at += 1) bytes[at] = letters.charCodeAt(at);
    return bytes;
}

export class Island implements Transport {
    readonly isReport = true;

    constructor(private readonly contents: Contents) {}

    get window(): string | null {
        return this.contents.window;
    }

    /** Levels of a track that have all tiles of a range. */
    levels(track: string, first: (level: number) => number, last: (level: number) => number): number[] {
        const found = new Map<number, Set<number>>();
        for (const place of Object.keys(this.contents.tiles)) {
            const [of, level, index] = place.split("/");
            if (of !== track) continue;
            const known = found.get(Number(level)) ?? new Set<number>();
            known.add(Number(index));
            found.set(Number(level), known);
        }
        return [...found.keys()]
            .filter((level) => {
                for (let index = first(level); index <= last(level); index += 1) if (!found.get(level)?.has(index)) return false;
                return true;
            })
            .sort((a, b) => a - b);
    }

    get(path: string): Promise<ArrayBuffer> {
        const [endpoint = "", query = ""] = path.split("?");
        const words = new URLSearchParams(query);
        if (endpoint === "tile") return this.#tile(words);
        const answer = this.#answer(endpoint, words);
        if (answer === undefined) {
            const hint = "query the recording in a terminal with the command that “copy command” copies";
            return Promise.reject(new ApiError("not included in this report", 404, hint));
        }
        return Promise.resolve(new TextEncoder().encode(JSON.stringify(answer)).buffer);
    }

    put(): Promise<void> {
        return Promise.reject(new ApiError("a report cannot be changed", 405));
    }

    /** The stored response, else the one for the whole report with a caveat. */
    #answer(endpoint: string, words: URLSearchParams): unknown {
        words.delete("rec");
        words.delete("digest");
        const exact = this.contents.answers[place(endpoint, words)];
        if (exact !== undefined) return exact;
        if (endpoint === "explain") return this.#explanation(words);
        if (words.has("at")) return this.#nearestDump(endpoint, words);
        if (!words.has("w")) return undefined;
        const isWhole = words.get("w") === this.contents.window;
        words.delete("w");
        const whole = this.contents.answers[place(endpoint, words)];
        if (isWhole || endpoint === "tracks" || whole === undefined) return whole;
        return withCaveat(whole, OTHER_WINDOW);
    }

    /** Of single rows: the finding of the report about that row. Of windows: all findings, with a caveat. */
    #explanation(words: URLSearchParams): unknown {
        const request = words.get("request");
        const w = words.get("w");
        const id = request === null ? (w !== null && !w.includes("..") ? w : null) : `request:${request}`;
        const whole = this.contents.answers["explain"];
        if (id !== null) return withOnly(whole, id);
        const isWhole = w === null || w === this.contents.window;
        words.delete("w");
        const answer = this.contents.answers[place("explain", words)];
        if (isWhole || answer === undefined) return answer;
        return withCaveat(answer, OTHER_WINDOW);
    }

    /** A report has thread dumps of some points in time only: the nearest one, with a caveat. */
    #nearestDump(endpoint: string, words: URLSearchParams): unknown {
        const wanted = parseOffset(words.get("at") ?? "");
        const view = words.get("view");
        let nearest: { readonly answer: unknown; readonly far: number; readonly at: string } | null = null;
        for (const [address, answer] of Object.entries(this.contents.answers)) {
            const [of, query = ""] = address.split("?");
            const known = new URLSearchParams(query);
            const at = parseOffset(known.get("at") ?? "");
            if (of !== endpoint || known.get("view") !== view || at === null || wanted === null) continue;
            const far = Math.abs(at - wanted);
            if (!nearest || far < nearest.far) nearest = { answer, far, at: known.get("at") ?? "" };
        }
        if (!nearest) return undefined;
        return withCaveat(nearest.answer, `stacks of ${nearest.at}, ${duration(nearest.far)} away; the report includes stacks of selected times only`);
    }

    #tile(words: URLSearchParams): Promise<ArrayBuffer> {
        const name = `${words.get("track")}/${words.get("level")}/${words.get("index")}`;
        const packed = this.contents.tiles[name];
        if (packed === undefined) return Promise.reject(new ApiError("this part of the timeline is not included in the report", 404));
        return Promise.resolve(fromBase64(packed).buffer);
    }
}

/** The URL of a request, its keys sorted. */
function place(endpoint: string, words: URLSearchParams): string {
    const sorted = new URLSearchParams([...words].sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)));
    const text = sorted.toString();
    return text ? `${endpoint}?${text}` : endpoint;
}

/** An explanation with only the findings about one row; undefined without any. */
function withOnly(explanation: unknown, id: string): unknown {
    if (typeof explanation !== "object" || explanation === null || !("findings" in explanation)) return undefined;
    const findings = (explanation as Explanation).findings.filter((finding) => finding.target.id === id);
    return findings.length > 0 ? { ...explanation, findings, observations: [], patterns: [], fine: [], caveats: [] } : undefined;
}

function withCaveat(answer: unknown, caveat: string): unknown {
    if (typeof answer !== "object" || answer === null) return answer;
    const caveats = "caveats" in answer && Array.isArray(answer.caveats) ? (answer.caveats as readonly unknown[]) : [];
    return { ...answer, caveats: [caveat, ...caveats] };
}
