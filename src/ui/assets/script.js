// Pages work without this script. It shows times as they are where the reader is, and keeps marked pages current.
"use strict";

/** In milliseconds. A page that takes long is asked for less often, so that it takes a fifth of the time at most. */
const PAUSE = 1000;
const SHARE = 5;

const policy = window.trustedTypes
    ? window.trustedTypes.createPolicy("streamfleet", { createHTML: (/** @type {string} */ text) => text })
    : { createHTML: (/** @type {string} */ text) => text };

const UNITS = /** @type {[Intl.RelativeTimeFormatUnit, number][]} */ ([["year", 31557600], ["day", 86400], ["hour", 3600], ["minute", 60]]);
const DAY = 86_400_000;
const SHOWN = /** @type {Intl.DateTimeFormatOptions} */ ({ dateStyle: "medium", timeStyle: "short" });
const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto" });

/** How long ago a time was, or how far away it is. @param {Date} at */
function distance(at) {
    const seconds = (at.getTime() - Date.now()) / 1000;
    const unit = UNITS.find(([, length]) => Math.abs(seconds) >= length);
    return unit ? relative.format(Math.trunc(seconds / unit[1]), unit[0]) : "just now";
}

/** @param {ParentNode} root */
function localize(root) {
    for (const time of root.querySelectorAll("time[datetime]")) {
        const at = new Date(time.getAttribute("datetime") ?? "");
        if (!Number.isNaN(at.getTime())) {
            const ago = document.createElement("span");
            ago.className = "ago";
            ago.textContent = distance(at);
            // What happened lately in a list is read by its distance alone.
            const isNear = time.closest("table.stacks") && Math.abs(at.getTime() - Date.now()) < DAY;
            if (!time.textContent?.endsWith(ago.textContent)) {
                time.replaceChildren(...(isNear ? [ago] : [at.toLocaleString([], SHOWN), " ", ago]));
            }
            time.setAttribute("title", at.toLocaleString([], { dateStyle: "full", timeStyle: "long" }));
        }
    }
}

/** The approvals that a page has buttons for. @param {ParentNode | null} page */
function approvals(page) {
    return [...page?.querySelectorAll("main input[name=id]") ?? []].map((id) => id.getAttribute("value")).join();
}

/** What the reader opened that can't be opened again in a newer content: it has no name. @param {ParentNode} root */
function nameless(root) {
    return [...root.querySelectorAll("main details[open]")].filter((details) => details.id === "");
}

/** Whether replacing the content would disturb the reader. */
function isBusy() {
    const active = document.activeElement;
    const main = document.querySelector("main[data-live]");
    return (active !== main && main?.contains(active)) || window.getSelection()?.type === "Range" || nameless(document).length > 0;
}

/**
 * Replaces the content by that of a newer page, and leaves what the reader opened open. A button to approve keeps standing
 * below what was read, and a reader isn't disturbed: then the content stays, and the answer says why.
 * @param {string} text
 */
function refresh(text) {
    const page = new DOMParser().parseFromString(/** @type {any} */ (policy.createHTML(text)), "text/html");
    const [now, next] = [document.querySelector("main[data-live]"), page.querySelector("main[data-live]")];
    if (!now || !next) {
        return "";
    }
    const open = [...now.querySelectorAll("details[open]")].map((details) => details.id).filter((id) => id !== "");
    open.forEach((id) => next.querySelector(`#${CSS.escape(id)}`)?.setAttribute("open", ""));
    localize(next);
    localize(now);
    const shown = document.createElement("body");
    shown.append(now.cloneNode(true));
    nameless(shown).forEach((details) => details.removeAttribute("open"));
    if (shown.firstElementChild?.innerHTML === next.innerHTML) {
        return "";
    }
    if (approvals(document) !== "" && approvals(document) !== approvals(page)) {
        return "The plan has changed since you read it. Load the page again to read what it is now.";
    }
    if (isBusy()) {
        return "Something has changed here. To see it, leave what you selected, opened or typed: press Escape.";
    }
    now.replaceChildren(...next.childNodes);
    return "";
}

/** The tag of the content: the server sends no page that has the same. */
let tag = "";

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

/** A newer page that isn't shown yet. */
let waiting = "";

/** Shows what the server has by now, if that is another content. */
async function update() {
    const headers = { Accept: "text/html", ...(tag && { "If-None-Match": tag }) };
    const answer = await fetch(location.href, { headers, cache: "no-store", redirect: "manual" });
    if (answer.type === "opaqueredirect" || answer.status === 404) {
        // The session ended, or what the page is about is gone: the server says which.
        location.reload();
        return;
    }
    if (answer.ok) {
        waiting = await answer.text();
        tag = answer.headers.get("ETag") ?? "";
    } else if (answer.status !== 304) {
        tell(`This page is as it was at ${current}: the server answers with an error.`);
        return;
    }
    localize(document);
    const why = waiting && refresh(waiting);
    tell(why);
    if (why === "") {
        waiting = "";
        current = new Date().toLocaleTimeString();
    }
}

async function follow() {
    const start = performance.now();
    if (!document.hidden) {
        try {
            await update();
        } catch {
            tell(`This page is as it was at ${current}: the server can't be reached.`);
        }
    }
    setTimeout(follow, Math.max(PAUSE, SHARE * (performance.now() - start)));
}

/** Leaves what keeps a newer content from being shown. @param {KeyboardEvent} event */
function leave(event) {
    if (event.key === "Escape" && waiting !== "") {
        nameless(document).forEach((details) => details.removeAttribute("open"));
        window.getSelection()?.removeAllRanges();
        /** @type {HTMLElement | null} */ (document.activeElement)?.blur();
    }
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
// On a narrow screen, the navigation is one line that scrolls.
document.querySelectorAll("nav a[aria-current]").forEach((link) => link.scrollIntoView({ block: "nearest", inline: "center" }));
if (document.querySelector("main[data-live]")) {
    document.addEventListener("keydown", leave);
    setTimeout(follow, PAUSE);
}
