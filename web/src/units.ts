// Quantities formatted for display; machine-readable formats keep ns and bytes.

const DURATIONS: readonly (readonly [number, string])[] = [
    [1e9, "s"],
    [1e6, "ms"],
    [1e3, "us"],
    [1, "ns"],
];
const SIZES = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"] as const;

/** Three significant digits; integers keep all digits. */
export function digits(value: number): string {
    const size = Math.abs(Number(value.toPrecision(3)));
    if (size >= 100 || Number.isInteger(value)) return grouped(Math.round(value));
    return value.toFixed(size >= 10 ? 1 : size >= 1 ? 2 : 3);
}

/** Thousands separated by a narrow space, as in the terminal. */
export function grouped(value: number | bigint): string {
    const text = value.toString();
    if (!/^-?\d{5,}$/.test(text)) return text;
    return text.replace(/\B(?=(\d{3})+$)/g, "\u202f");
}

/** `0`, `950`, `12.3k`, `4.1M`: for labels with little room. */
export function compact(count: number): string {
    const scale = [
        [1e9, "G"],
        [1e6, "M"],
        [1e3, "k"],
    ] as const;
    const [size, unit] = scale.find(([size]) => count >= size * 0.9995) ?? [1, ""];
    const value = count / size;
    return `${size === 1 || value >= 99.95 ? Math.round(value) : value.toFixed(1)}${unit}`;
}

/** `158 ms`, `2.30 ms`, `61 s`, `0 ns`. */
export function duration(ns: number): string {
    const [scale, unit] = DURATIONS.find(([scale]) => Math.abs(ns) >= scale * 0.9995) ?? [1, "ns"];
    return `${digits(ns / scale)} ${unit}`;
}

export function bytes(count: number): string {
    let value = count;
    let unit = 0;
    while (Math.abs(value) >= 1023.5 && unit < SIZES.length - 1) {
        value /= 1024;
        unit += 1;
    }
    return `${digits(value)} ${SIZES[unit] ?? "B"}`;
}

/** `99.9 %`; less than everything is never shown as 100 %. */
export function ratio(share: number): string {
    const percent = share * 100;
    if (percent > 99.9 && percent < 100) return "99.9 %";
    if (percent > 0 && percent < 0.1) return "< 0.1 %";
    return `${percent >= 9.95 ? percent.toFixed(percent >= 99.95 ? 0 : 1) : percent.toFixed(1)} %`;
}

export function rate(perSecond: number): string {
    return `${digits(perSecond)}/s`;
}

/** A count with its noun: `plural(3, "row")`. */
export function plural(count: number, noun: string): string {
    return `${grouped(count)} ${noun}${count === 1 ? "" : "s"}`;
}
