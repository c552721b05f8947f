// Sign-in by OpenID Connect in a real browser, with a real Keycloak. Needs the variables CHROMIUM (the browser's path),
// STREAMFLEET (the binary's path) and KEYCLOAK (the folder of its distribution, with the realm in data/import), and a Java in
// JAVA_HOME. Runs the daemon and Keycloak itself.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { cpSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { createServer } from "node:net";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { chromium } from "playwright-core";

const { CHROMIUM, STREAMFLEET, EXAMPLE, WORK, KEYCLOAK } = process.env;
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

let work, keycloak, daemon, issuer, origin, browser;

/** Waits until a condition holds; Keycloak takes two minutes to start on a busy machine. */
async function until(what, log, holds) {
    for (let tries = 0; tries < 3000; tries += 1) {
        const found = await Promise.resolve(holds()).catch(() => undefined);
        if (found) {
            return found;
        }
        await sleep(100);
    }
    throw new Error(`it is still not so that ${what}\n${readFileSync(join(work, log), "utf8")}`);
}

const read = (log) => readFileSync(join(work, log), "utf8");

function freePort() {
    return new Promise((found) => {
        const server = createServer().listen(0, "127.0.0.1", () => {
            const { port } = server.address();
            server.close(() => found(port));
        });
    });
}

function start(log, command, words, env = {}) {
    const out = openSync(join(work, log), "w");
    return spawn(command, words, { env: { ...process.env, ...env }, stdio: ["ignore", out, out], detached: true });
}

/** Ends a process with all that it started, and waits for it: Keycloak's database is used again. */
async function stop(child) {
    if (child.exitCode === null && child.signalCode === null) {
        const ended = new Promise((resolve) => child.once("exit", resolve));
        process.kill(-child.pid, "SIGTERM");
        await ended;
    }
}

before(async () => {
    work = mkdtempSync(join(WORK, "keycloak-"));
    const port = await freePort();
    keycloak = start("keycloak.log", join(KEYCLOAK, "bin/kc.sh"), ["start-dev", "--import-realm", "--cache=local",
        "--http-host=127.0.0.1", `--http-port=${port}`], {
        JAVA_OPTS_KC_HEAP: "-Xms64m -Xmx512m", JAVA_OPTS_APPEND: "-XX:TieredStopAtLevel=1",
    });
    issuer = `http://127.0.0.1:${port}/realms/acme`;
    const specs = join(work, "specs");
    cpSync(EXAMPLE, specs, { recursive: true });
    writeFileSync(join(work, "secret"), "streamfleet-secret\n");
    writeFileSync(join(work, "settings.toml"), `[api]
listen = "127.0.0.1:0"
super_user_emails = ["ada@example.com"]
[api.oidc]
issuer = "${issuer}"
client_id = "streamfleet"
client_secret_file = "secret"
`);
    const settings = ["--config", join(work, "settings.toml")];
    daemon = start("log", STREAMFLEET, ["serve", "--specs", specs, ...settings]);
    const address = await until("it listens", "log", () => read("log").match(/listening for HTTP.*address=(\S+)/)?.[1]);
    origin = `http://${address}`;
    const status = () => execFileSync(STREAMFLEET, ["status", specs, ...settings], { encoding: "utf8" });
    await until("the clusters are there", "log", () => status().match(/Written/g)?.length === 2);
    const metadata = `${issuer}/.well-known/openid-configuration`;
    await until("Keycloak answers", "keycloak.log", async () => (await fetch(metadata)).ok);
    browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox"] });
});

after(async () => {
    await browser?.close();
    await Promise.all([daemon, keycloak].filter(Boolean).map(stop));
    rmSync(work, { recursive: true, force: true });
});

/** A page that hears what the browser has against our pages. */
async function open(options = {}) {
    const context = await browser.newContext(options);
    const page = await context.newPage();
    page.complaints = [];
    page.on("console", (message) => {
        if (message.location().url.startsWith(origin)) {
            page.complaints.push(`${page.url()}: ${message.text()}`);
        }
    });
    page.on("pageerror", (error) => page.url().startsWith(origin) && page.complaints.push(error.message));
    return page;
}

/** Signs in on Keycloak's page. */
async function signIn(page, path, organization, user) {
    await page.goto(`${origin}${path}`);
    await page.getByRole("textbox", { name: "Organization" }).fill(organization);
    await page.getByRole("button", { name: /^Continue with 127/ }).click();
    await page.waitForURL(`${issuer}/**`);
    await page.locator("#username").fill(user);
    await page.locator("#password").fill("engine");
    await page.locator("#kc-login").click();
}

for (const javaScriptEnabled of [true, false]) {
    const how = javaScriptEnabled ? "with" : "without";
    test(`somebody signs in at Keycloak ${how} script, lands on their page, and signs out`, async () => {
        const page = await open({ javaScriptEnabled });
        await signIn(page, "/ui/clusters?status=Written", "root", "ada");
        await page.waitForURL(`${origin}/ui/clusters?status=Written`);
        await page.getByRole("heading", { name: "Clusters" }).waitFor();
        await page.goto(`${origin}/ui/you`);
        await page.getByText("ada@example.com").first().waitFor();
        const cookies = await page.context().cookies(`${origin}/ui/`);
        const session = cookies.find((cookie) => cookie.name === "__Host-streamfleet");
        assert.ok(session.httpOnly && session.secure && session.sameSite === "Lax", JSON.stringify({ ...session, value: "" }));
        const me = () => fetch(`${origin}/v1/me`, { headers: { authorization: `Bearer ${session.value}` } });
        assert.equal((await me()).status, 200);
        await page.getByRole("button", { name: "Sign out" }).click();
        await page.getByRole("heading", { name: "Sign in" }).waitFor();
        assert.equal((await me()).status, 401, "the session ended on the server");
        await page.context().addCookies([session]);
        await page.goto(`${origin}/ui/you`);
        await page.getByRole("heading", { name: "Sign in" }).waitFor();
        assert.deepEqual(page.complaints, []);
        await page.context().close();
    });
}

test("Keycloak asks for the password anew where a proof is needed, and a silent sign-in is none", async () => {
    const page = await open();
    const provedAt = async () => {
        const cookies = await page.context().cookies(`${origin}/ui/`);
        const { value } = cookies.find((cookie) => cookie.name === "__Host-streamfleet");
        const me = await (await fetch(`${origin}/v1/me`, { headers: { authorization: `Bearer ${value}` } })).json();
        assert.equal(me.sign_in.with, issuer);
        return Date.parse(me.sign_in.proved_at);
    };
    const goOn = async (path) => {
        await page.goto(`${origin}${path}`);
        await page.getByRole("textbox", { name: "Organization" }).fill("root");
        await page.getByRole("button", { name: /^Continue with 127/ }).click();
    };
    await signIn(page, "/ui/tokens", "root", "ada");
    await page.waitForURL(`${origin}/ui/tokens`);
    const first = await provedAt();
    assert.ok(Math.abs(Date.now() - first) < 60_000, "the time of the password");
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    // Keycloak knows the browser.
    await goOn("/ui/tokens");
    await page.waitForURL(`${origin}/ui/tokens`);
    assert.equal(await provedAt(), first);
    await goOn("/ui/sign-in?again=1&next=/ui/tokens");
    await page.waitForURL(`${issuer}/**`);
    await page.locator("#password").fill("engine");
    await page.locator("#kc-login").click();
    await page.waitForURL(`${origin}/ui/tokens`);
    assert.ok(await provedAt() > first);
    assert.deepEqual(page.complaints, []);
    await page.context().close();
});

test("somebody whose address Keycloak did not verify is refused, and the log says why", async () => {
    const page = await open();
    await signIn(page, "/ui/", "acme", "mallory");
    await page.getByText("you were not signed in").waitFor();
    assert.ok(!(await page.content()).includes("verified"));
    await until("the log says why", "log", () => read("log").includes("doesn't call the address platform@acme.example.com"));
    await page.context().close();
});

test("the form with both ways to sign in is accessible", async () => {
    for (const width of [320, 1280]) {
        const page = await open({ viewport: { width, height: 900 }, bypassCSP: true });
        for (const path of ["/ui/sign-in?next=/ui/plan", "/ui/sign-in/callback"]) {
            await page.goto(`${origin}${path}`);
            await page.getByText("Sign in with an API token").click();
            await page.evaluate(axe);
            const { violations } = await page.evaluate(() => axe.run());
            const told = violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).join(" ")}`);
            assert.deepEqual(told, [], path);
            const overflow = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
            assert.ok(overflow <= 0, `${path} scrolls sideways by ${overflow} pixels`);
        }
        await page.context().close();
    }
});
