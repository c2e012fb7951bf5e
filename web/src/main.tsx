import "./page.css";
import "./runs.css";
import { render } from "preact";
import { App } from "./app.js";
import { refuseStrayDrops } from "./uploads.js";

refuseStrayDrops();
const place = document.getElementById("page");
if (place) render(<App />, place);
