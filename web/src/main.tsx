import "./app.css";

import { render } from "preact";

const place = document.getElementById("app");
if (place) {
    render(<h1>whyslow</h1>, place);
}
