import { useState } from "preact/hooks";

import { type Field, fieldsOf, type FleetQuery, type Options } from "../fleet";
import { refresh, choices } from "../lake";
import { view } from "../state";

/** Form with the parameters of a query, applied on submit. */
export function FleetForm({ query }: { readonly query: FleetQuery }) {
    const { options } = view.value;
    const fields = fieldsOf(query);
    // A change of the page URL resets what was typed.
    const key = JSON.stringify([query.name, fields.map((field) => options[field.option] ?? null)]);
    return <Choices key={key} fields={fields} options={options} />;
}

function Choices({ fields, options }: { fields: readonly Field[]; options: Options }) {
    const given = Object.fromEntries(fields.map((field) => [field.option, options[field.option] ?? ""]));
    const [typed, setTyped] = useState<Readonly<Record<string, string>>>(given);
    const type = (option: string, value: string) => setTyped((before) => ({ ...before, [option]: value }));
    const isSame = fields.every((field) => (typed[field.option] ?? "").trim() === given[field.option]);
    const submit = (event: Event) => {
        event.preventDefault();
        if (isSame) refresh();
        else choices(Object.fromEntries(Object.entries(typed).map(([option, value]) => [option, value.trim()])));
    };
    const isAny = fields.some((field) => given[field.option]);
    return (
        <form class="fleet-form" aria-label="query parameters" onSubmit={submit}>
            {fields.map((field) => (
                <One key={field.option} field={field} value={typed[field.option] ?? ""} onType={(value) => type(field.option, value)} />
            ))}
            <button type="submit" class="primary">
                {isSame ? "refresh" : "run query"}
            </button>
            {isAny && (
                <button type="button" onClick={() => choices(Object.fromEntries(fields.map((field) => [field.option, null])))}>
                    clear
                </button>
            )}
        </form>
    );
}

function One({ field, value, onType }: { field: Field; value: string; onType: (value: string) => void }) {
    if (field.isFlag) {
        return (
            <label title={field.about}>
                <input type="checkbox" name={field.option} checked={value === "true"} onChange={(event) => onType(event.currentTarget.checked ? "true" : "")} />{" "}
                {field.label}
            </label>
        );
    }
    return (
        <label title={field.about}>
            {field.label}{" "}
            <input
                type="text"
                name={field.option}
                value={value}
                placeholder={field.placeholder}
                size={field.option === "when" ? 24 : 9}
                spellcheck={false}
                onInput={(event) => onType(event.currentTarget.value)}
            />
        </label>
    );
}
