import "./page.css";
import { render } from "preact";
import { App } from "./app.js";

const place = document.getElementById("page");
if (place) render(<App />, place);
