import { useMemo } from "preact/hooks";

import { toNumber } from "../exact";
import type { AnswerTable, Row } from "../types";
import { bytes, digits, duration, grouped, plural } from "../units";
import { visible } from "../visible";

interface Bucket {
    readonly label: string;
    readonly counts: readonly number[];
    readonly isOutlier: boolean;
    /** Empty buckets left out before this one. */
    readonly skipped: number;
}

/** Buckets with their counts; runs of empty ones are one line, so that the tail is visible. */
export function Histogram({ table }: { readonly table: AnswerTable }) {
    const { buckets, series } = useMemo(() => read(table), [table]);
    const most = Math.max(1, ...buckets.flatMap((bucket) => bucket.counts));
    return (
        <section class="histogram" aria-label={visible(table.title)}>
            <header>
                <h2>{visible(table.title)}</h2>
                <Facts facts={table.facts} />
            </header>
            <table>
                <thead>
                    <tr>
                        <th scope="col">from</th>
                        {series.map((name) => (
                            <th scope="col" colSpan={2} key={name}>
                                {visible(name)}
                            </th>
                        ))}
                    </tr>
                </thead>
                <tbody>
                    {buckets.map((bucket) => (
                        <Line key={bucket.label} bucket={bucket} most={most} width={series.length} />
                    ))}
                </tbody>
            </table>
            {buckets.length === 0 && <p class="quiet none">no data in this window</p>}
        </section>
    );
}

function Line({ bucket, most, width }: { bucket: Bucket; most: number; width: number }) {
    return (
        <>
            {bucket.skipped > 0 && (
                <tr class="quiet">
                    <td colSpan={1 + 2 * width}>… {plural(bucket.skipped, "empty bucket")}</td>
                </tr>
            )}
            <tr class={bucket.isOutlier ? "outlier" : undefined}>
                <th scope="row">{bucket.label}</th>
                {bucket.counts.map((count, at) => (
                    <Bar key={at} count={count} most={most} at={at} isOutlier={bucket.isOutlier} />
                ))}
            </tr>
        </>
    );
}

function Bar({ count, most, at, isOutlier }: { count: number; most: number; at: number; isOutlier: boolean }) {
    // Square root: one slow call among ten thousand fast ones stays visible.
    const share = count ? Math.max(Math.sqrt(count / most), 0.006) : 0;
    return (
        <>
            <td class="bar" aria-hidden="true">
                <i class={`series-${at % 4}`} style={{ width: `${share * 100}%` }} />
            </td>
            <td class="number">
                {count ? grouped(count) : "·"}
                {isOutlier && count > 0 ? " !" : ""}
            </td>
        </>
    );
}

const EDGES = new Set(["from_ns", "to_ns", "from_bytes", "to_bytes", "from", "to", "outlier", "overlap"]);

function read(table: AnswerTable): { buckets: Bucket[]; series: string[] } {
    const columns = table.columns.filter((column) => !EDGES.has(column.name));
    const edge = table.columns.find((column) => column.name.startsWith("from"));
    const label = (row: Row) => {
        const from = edge ? toNumber((row[edge.name] ?? 0) as number) : 0;
        return edge?.measure === "bytes" ? bytes(from) : edge?.measure === "duration_ns" ? duration(from) : digits(from);
    };
    const buckets: Bucket[] = [];
    let skipped = 0;
    for (const row of table.rows) {
        const counts = columns.map((column) => toNumber((row[column.name] ?? 0) as number));
        if (counts.every((count) => count === 0)) {
            skipped += 1;
            continue;
        }
        const isGap = buckets.length > 0 ? skipped : 0;
        buckets.push({ label: label(row), counts, isOutlier: row["outlier"] === true, skipped: isGap });
        skipped = 0;
    }
    return { buckets, series: columns.map((column) => column.title) };
}

const SHOWN: readonly (readonly [string, string])[] = [
    ["count", "n"],
    ["p50_ns", "p50"],
    ["p90_ns", "p90"],
    ["p99_ns", "p99"],
    ["max_ns", "max"],
];

function Facts({ facts }: { facts: AnswerTable["facts"] }) {
    const present = SHOWN.filter(([key]) => typeof facts[key] === "number");
    return (
        <span class="quiet">
            {present.map(([key, name]) => {
                const value = facts[key] as number;
                return `${name} ${key.endsWith("_ns") ? duration(value) : grouped(value)}`;
            }).join("  ")}
        </span>
    );
}
