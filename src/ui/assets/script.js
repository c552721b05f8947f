// Pages work without this script. It shows times as they are where the reader is, and keeps marked pages current.
"use strict";

/** Every two seconds while the page is visible; a slower server is asked less often. */
const PAUSE = 2000;

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

async function follow() {
    if (!isBusy()) {
        try {
            const answer = await fetch(location.href, { headers: { Accept: "text/html" }, redirect: "error" });
            if (answer.ok && !isBusy()) {
                refresh(await answer.text());
            }
        } catch {
            // The daemon is away, or the session ended. The next click tells.
        }
    }
    setTimeout(follow, PAUSE);
}

localize(document);
if (document.querySelector("main[data-live]")) {
    setTimeout(follow, PAUSE);
}
