
"use strict";
(() => {
    const whole = 1200;
    const character = 6.7;
    const groups = Array.from(document.querySelectorAll("#boxes > g"));
    const boxes = groups.map((group) => {
        const rect = group.querySelector("rect");
        const title = group.querySelector("title").textContent;
        const number = (name) => Number(rect.getAttribute(name));
        return { group, rect, title, text: group.querySelector("text"), x: number("x"), y: number("y"), w: number("width") };
    });
    const name = (box) => box.title.slice(0, Math.max(box.title.lastIndexOf(": "), 0));
    // In a chart, x is time: zooming shows everything in that time.
    const isChart = document.querySelector("#boxes").hasAttribute("data-chart");
    const tooltip = document.getElementById("tooltip");
    const found = document.getElementById("found");
    let at = boxes[0];
    if (!at) return;

    const place = (box, left, width) => {
        box.rect.setAttribute("x", left);
        box.rect.setAttribute("width", Math.max(width, 0));
        box.text.setAttribute("x", left + 3);
        const room = Math.floor((width - 6) / character);
        const letters = Array.from(name(box));
        box.text.textContent = room < 3 ? "" : letters.length <= room ? letters.join("") : letters.slice(0, room - 1).join("") + "…";
    };
    const zoom = (to) => {
        const scale = whole / to.w;
        for (const box of boxes) {
            const isAbove = (isChart || box.y < to.y) && box.x <= to.x + 0.01 && box.x + box.w >= to.x + to.w - 0.01;
            const isBelow = isChart
                ? box.x < to.x + to.w - 0.01 && box.x + box.w > to.x + 0.01
                : box.y >= to.y && box.x >= to.x - 0.01 && box.x + box.w <= to.x + to.w + 0.01;
            box.group.style.display = isAbove || isBelow ? "" : "none";
            box.group.classList.toggle("above", isAbove && !isChart);
            if (isAbove) place(box, 0, whole);
            else if (isBelow) {
                const left = Math.max(box.x - to.x, 0);
                place(box, left * scale, (Math.min(box.x + box.w, to.x + to.w) - to.x - left) * scale);
            }
        }
    };
    const choose = (box) => {
        if (!box) return;
        at.group.classList.remove("at");
        at = box;
        at.group.classList.add("at");
        tooltip.textContent = box.title;
    };
    const search = () => {
        const text = prompt("function");
        if (text === null) return;
        mark(text);
    };
    const reset = () => {
        mark("");
        zoom(boxes[0]);
    };
    const mark = (text) => {
        const wanted = text.toLowerCase();
        let sum = 0;
        let reached = 0;
        const hits = boxes.filter((box) => wanted !== "" && name(box).toLowerCase().includes(wanted));
        for (const box of boxes) box.group.classList.toggle("hit", hits.includes(box));
        // Of nested hits, only the outermost counts.
        const outer = hits.slice().sort((a, b) => a.x - b.x || a.y - b.y);
        for (const box of outer) {
            if (box.x < reached - 0.01) continue;
            sum += box.w;
            reached = box.x + box.w;
        }
        found.textContent = wanted === "" ? "" : ((sum / whole) * 100).toFixed(1) + " %";
    };
    const near = (key) => {
        const middle = at.x + at.w / 2;
        const holds = (box) => box.x <= middle && box.x + box.w >= middle;
        const row = boxes.filter((box) => box.y === at.y && box.group.style.display !== "none").sort((a, b) => a.x - b.x);
        if (key === "ArrowUp") return boxes.filter((box) => box.y < at.y && holds(box)).sort((a, b) => b.y - a.y)[0];
        if (key === "ArrowDown") return boxes.filter((box) => box.y > at.y && box.x >= at.x - 0.01 && box.x + box.w <= at.x + at.w + 0.01).sort((a, b) => a.y - b.y || b.w - a.w)[0];
        return row[row.indexOf(at) + (key === "ArrowLeft" ? -1 : 1)];
    };
    for (const box of boxes) {
        box.group.addEventListener("mouseenter", () => { tooltip.textContent = box.title; });
        box.group.addEventListener("click", () => { choose(box); zoom(box); });
    }
    document.getElementById("all").addEventListener("click", reset);
    document.getElementById("search").addEventListener("click", search);
    document.addEventListener("keydown", (event) => {
        if (event.key.startsWith("Arrow")) choose(near(event.key));
        else if (event.key === "Enter" && event.target.id === "search") search();
        else if (event.key === "Enter" && event.target.id === "all") reset();
        else if (event.key === "Enter") zoom(at);
        else if (event.key === "Escape") reset();
        else if (event.key === "/") search();
        else return;
        event.preventDefault();
    });
})();
