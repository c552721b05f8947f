// Pages work without this script. It shows times as they are where the reader is, and keeps marked pages current.
"use strict";

/** In milliseconds. A page that takes long is asked for less often, so that it takes a twentieth of the time at most. */
const PAUSE = 2000;
const SHARE = 20;

const policy = window.trustedTypes
    ? window.trustedTypes.createPolicy("streamfleet", { createHTML: (/** @type {string} */ text) => text })
    : { createHTML: (/** @type {string} */ text) => text };

/** @param {ParentNode} root */
function localize(root) {
    for (const time of root.querySelectorAll("time[datetime]")) {
        const at = new Date(time.getAttribute("datetime") ?? "");
        if (!Number.isNaN(at.getTime())) {
            time.textContent = at.toLocaleString();
            time.setAttribute("title", at.toISOString());
        }
    }
}

/** Replaces the content by that of a newer page, and leaves what the reader opened open. @param {string} text */
function refresh(text) {
    const page = new DOMParser().parseFromString(/** @type {any} */ (policy.createHTML(text)), "text/html");
    const [now, next] = [document.querySelector("main[data-live]"), page.querySelector("main[data-live]")];
    if (!now || !next) {
        return;
    }
    const open = [...now.querySelectorAll("details[open]")].map((details) => details.id).filter((id) => id !== "");
    open.forEach((id) => next.querySelector(`#${CSS.escape(id)}`)?.setAttribute("open", ""));
    localize(next);
    if (now.innerHTML !== next.innerHTML) {
        now.replaceChildren(...next.childNodes);
    }
}

/** Whether replacing the content would disturb the reader. */
function isBusy() {
    const active = document.activeElement;
    const main = document.querySelector("main[data-live]");
    return document.hidden || (active !== main && main?.contains(active)) || window.getSelection()?.type === "Range"
        || [...document.querySelectorAll("main details[open]")].some((details) => details.id === "");
}

/** When the content was current. */
let current = new Date().toLocaleTimeString();

/** Shows that the page is no longer current; nothing without a text. @param {string} text */
function tell(text) {
    const notice = document.querySelector("#stale");
    if (notice) {
        notice.textContent = text;
        notice.toggleAttribute("hidden", text === "");
    }
}

async function follow() {
    const start = performance.now();
    if (!isBusy()) {
        try {
            const answer = await fetch(location.href, { headers: { Accept: "text/html" }, redirect: "manual" });
            if (answer.type === "opaqueredirect" || answer.status === 404) {
                // The session ended, or what the page is about is gone: the server says which.
                location.reload();
                return;
            }
            const text = await answer.text();
            tell(answer.ok ? "" : `This page is as it was at ${current}: the server answers with an error.`);
            if (answer.ok && !isBusy()) {
                refresh(text);
                current = new Date().toLocaleTimeString();
            }
        } catch {
            tell(`This page is as it was at ${current}: the server can't be reached.`);
        }
    }
    setTimeout(follow, Math.max(PAUSE, SHARE * (performance.now() - start)));
}

/** The largest form that the server reads, in bytes. */
const LARGEST_FORM = 256 * 1024;

/** Tells something about a form, and shows it. @param {string} text */
function say(text) {
    tell(text);
    document.querySelector("#stale")?.scrollIntoView();
}

/** A file's content goes into the field, as if it was pasted. */
for (const input of document.querySelectorAll("input[type=file][data-into]")) {
    input.closest("label")?.removeAttribute("hidden");
    input.addEventListener("change", async () => {
        const [file] = /** @type {HTMLInputElement} */ (input).files ?? [];
        const field = /** @type {HTMLTextAreaElement | null} */ (document.getElementById(input.getAttribute("data-into") ?? ""));
        if (file && file.size > LARGEST_FORM) {
            say(`${file.name} is larger than ${LARGEST_FORM / 1024} KiB, so it was not read.`);
        } else if (file && field) {
            field.value = await file.text();
        }
    });
}

/** A second click before the answer would send a form twice. */
for (const form of document.querySelectorAll("form[method=post]")) {
    form.addEventListener("submit", (event) => {
        const fields = new FormData(/** @type {HTMLFormElement} */ (form));
        if (form.hasAttribute("data-sent")) {
            event.preventDefault();
        } else if (new URLSearchParams(/** @type {any} */ (fields)).toString().length > LARGEST_FORM) {
            event.preventDefault();
            say(`The form is larger than ${LARGEST_FORM / 1024} KiB, so it was not sent. Shorten what is long.`);
        } else {
            form.setAttribute("data-sent", "");
        }
    });
    window.addEventListener("pageshow", () => form.removeAttribute("data-sent"));
}

localize(document);
if (document.querySelector("main[data-live]")) {
    setTimeout(follow, PAUSE);
}
