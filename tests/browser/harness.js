// What all tests of the web UI share: a daemon, and a real browser. Needs the variables CHROMIUM (the browser's path) and
// STREAMFLEET (the binary's path), and runs the daemon itself. With BASE_PATH, a path like /streamfleet, the daemon is as behind a proxy that serves it there.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { once } from "node:events";
import { createRequire } from "node:module";
import { join } from "node:path";
import { after, before } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { chromium } from "playwright-core";

const { CHROMIUM, STREAMFLEET, EXAMPLE, WORK, BASE_PATH = "" } = process.env;
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

export const PAGES = [
    "/", "/plan", "/fleets", "/clusters", "/clusters?status=Failed", "/base-domains", "/identity-providers", "/cloud-accounts",
    "/organizations", "/events", "/tokens", "/you", "/about", "/members", "/fleets/acme/eu", "/clusters/acme/orders", "/clusters/acme/orders/why",
    "/clusters/acme/orders/connect", "/clusters/acme/orders/file", "/fleets/acme/eu/history", "/base-domains/acme/kafka.acme.example.com", "/organizations/acme/acme",
    "/new/fleets", "/new/clusters", "/new/clusters?step=3&%2Fcluster_type=kafka&%2Forganization=acme&%2Fidentifier=new&%2Ftenancy_mode=Shared&%2Fkafka_units=1",
    "/new/organizations", "/new/base-domains", "/new/identity-providers", "/new/cloud-accounts", "/clusters/acme/orders/edit", "/clusters/acme/orders/delete", "/clusters/acme/orders/events",
    "/topics?organization=acme&cluster=orders", "/users?organization=acme", "/topics/acme/orders%2Fpayments.events.v1", "/users/acme/orders%2Fbilling",
    "/users/acme/orders%2Fbilling/edit", "/users/acme/orders%2Fbilling/connect", "/topics/acme/orders%2Fpayments.events.v1/delete", "/new/topics", "/new/users?%2Forganization=acme&%2Fcluster=orders",
    "/plan?resource=Cluster%2Facme%2Forders", "/events?about=resources",
];

export let work, specs, daemon, origin, browser;

/** Waits until a condition holds. */
export async function until(what, holds) {
    for (let tries = 0; tries < 600; tries += 1) {
        const found = await holds();
        if (found) {
            return found;
        }
        await sleep(100);
    }
    throw new Error(`it is still not so that ${what}\n${readFileSync(join(work, "log"), "utf8")}`);
}

export function streamfleet(...words) {
    const settings = ["--config", join(work, "settings.toml")];
    return execFileSync(STREAMFLEET, [...words, ...settings], { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
}

export function token(organization, owner, access) {
    const whole = organization === "root" ? ["--all-organizations"] : ["--organization", organization];
    const words = ["token", "create", specs, "--name", "test", "--owner", owner, "--access", access, ...whole];
    return streamfleet(...words).trim();
}

/** A page of somebody who signed in. Every message in its console and every request elsewhere is a failure. */
export async function signIn(options = {}, secret = token("root", "ada@example.com", "admin"), organization = "root") {
    const context = await browser.newContext(options);
    const page = await context.newPage();
    page.complaints = [];
    page.on("console", (message) => page.complaints.push(`${page.url()}: ${message.text()}`));
    page.on("pageerror", (error) => page.complaints.push(`${page.url()}: ${error.message}`));
    page.on("request", (request) => {
        if (!request.url().startsWith(origin)) {
            page.complaints.push(`${page.url()} requests ${request.url()}`);
        }
    });
    await page.goto(`${origin}/ui/clusters?status=Written`);
    await page.getByLabel("Organization").fill(organization);
    await page.getByLabel("API token").fill(secret);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.waitForURL("**/ui/clusters?status=Written");
    return page;
}

before(async () => {
    work = mkdtempSync(join(WORK, "ui-"));
    specs = join(work, "specs");
    cpSync(EXAMPLE, specs, { recursive: true });
    const of = "organization: acme\ncluster: orders\n";
    writeFileSync(join(specs, "acme/on-orders.yaml"), `apiVersion: streamfleet/v1\nkind: Topic\n${of}name: payments.events.v1\npartitions: 12\n---\n`
        + `apiVersion: streamfleet/v1\nkind: User\n${of}identifier: billing\nproduce: ["payments.*"]\nconsume: [{topic: "payments.*", group: billing}]\n`);
    const base = BASE_PATH === "" ? "" : `base_url = "http://127.0.0.1${BASE_PATH}"\n`;
    writeFileSync(join(work, "settings.toml"), `[api]\nlisten = "127.0.0.1:0"\nsuper_user_emails = ["ada@example.com"]\n${base}`);
    daemon = spawn("sh", ["-c", `exec "$0" serve --specs "$1" --config "$2" 2>"$3"`, STREAMFLEET, specs,
        join(work, "settings.toml"), join(work, "log")]);
    const address = await until("it listens", () => {
        try {
            return readFileSync(join(work, "log"), "utf8").match(/listening for HTTP.*address=(\S+)/)?.[1];
        } catch {
            return undefined;
        }
    });
    origin = `http://${address}${BASE_PATH}`;
    await until("the clusters are there", () => streamfleet("status", specs).match(/Written/g)?.length === 2);
    browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox"] });
});

after(async () => {
    await browser?.close();
    // It writes its state until it ends.
    if (daemon !== undefined && daemon.exitCode === null && daemon.signalCode === null) {
        const ended = once(daemon, "exit");
        daemon.kill();
        await ended;
    }
    rmSync(work, { recursive: true, force: true });
});

export const WIDTHS = [320, 768, 1280];

/** Nothing on a page is a violation, and nothing scrolls sideways, neither the page nor what is a list on it. */
export async function isAccessible(page, what) {
    await page.evaluate(axe);
    const { violations } = await page.evaluate(() => axe.run());
    const told = violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).join(" ")}`);
    assert.deepEqual(told, [], what);
    const wide = await page.evaluate(() => [document.documentElement, ...document.querySelectorAll(".scroll")]
        .filter((part) => part.scrollWidth > part.clientWidth + 1).map((part) => part.getAttribute("aria-label") ?? "the page"));
    // Wider tables scroll by themselves.
    const expected = page.viewportSize().width > 640 ? wide.filter((part) => part !== "the page") : [];
    assert.deepEqual(wide, expected, `${what} scrolls sideways at ${page.viewportSize().width} pixels`);
}

/** As above, in light and dark and at all widths. */
export async function isAccessibleEverywhere(page, what) {
    for (const colorScheme of ["light", "dark"]) {
        await page.emulateMedia({ colorScheme });
        for (const width of WIDTHS) {
            await page.setViewportSize({ width, height: 900 });
            await isAccessible(page, `${what} in ${colorScheme}`);
        }
    }
}
