import { useEffect, useState } from "preact/hooks";

import { api, clock, recording, shown } from "../app";
import { bookmarks, type Bookmark, loadBookmarks, saveBookmarks } from "../bookmarks";
import { go } from "../state";
import { clamp, timeOfDay, withMargin } from "../times";
import { duration } from "../units";
import { visible } from "../visible";
import { Dialog } from "./dialogs";

/** The user's bookmarks, with their notes. */
export function Bookmarks() {
    const [note, setNote] = useState("");
    const id = recording.value?.id;
    useEffect(() => {
        if (api.value && id) void loadBookmarks(api.value, id);
    }, [api.value, id]);
    const add = (event: Event) => {
        event.preventDefault();
        const { begin, end } = shown.value;
        void saveBookmarks([...bookmarks.value, { begin, end, note: note.trim() || "window" }]);
        setNote("");
    };
    const open = (one: Bookmark) => go({ window: clamp(one.end > one.begin ? one : withMargin({ begin: one.begin, end: one.begin + 1e6 }, 5), clock.value.length) });
    return (
        <Dialog label="bookmarks">
            <form onSubmit={add} class="actions">
                <input aria-label="note about this window" placeholder="note about this window" value={note} onInput={(event) => setNote(event.currentTarget.value)} />
                <button type="submit">bookmark this window</button>
            </form>
            <ul class="plain">
                {bookmarks.value.map((one, at) => (
                    <li key={at}>
                        <button type="button" class="link" onClick={() => open(one)}>
                            {timeOfDay(clock.value, one.begin, 1e6)} {one.end > one.begin && duration(one.end - one.begin)}
                        </button>{" "}
                        {visible(one.note)}{" "}
                        <button type="button" class="small" aria-label={`remove ${visible(one.note)}`} onClick={() => void saveBookmarks(bookmarks.value.filter((other) => other !== one))}>
                            ×
                        </button>
                    </li>
                ))}
            </ul>
            {bookmarks.value.length === 0 && <p class="quiet none">no bookmarks</p>}
        </Dialog>
    );
}
