// What people do with the web UI, in a real browser.
import assert from "node:assert/strict";
import { mkdirSync, rmSync, unlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { browser, daemon, isAccessibleEverywhere, origin, PAGES, signIn, specs, streamfleet, token, until } from "./harness.js";

test("all pages work under their own content security policy and without script", async () => {
    for (const javaScriptEnabled of [true, false]) {
        const page = await signIn({ javaScriptEnabled });
        for (const path of PAGES) {
            const answer = await page.goto(`${origin}/ui${path}`);
            assert.equal(answer.status(), 200, path);
            assert.equal(await page.locator("h1").count(), 1, path);
        }
        assert.deepEqual(page.complaints, []);
        await page.context().close();
    }
});

test("somebody signs in and reads the plan with the keyboard alone", async () => {
    const page = await browser.newPage();
    await page.goto(`${origin}/ui/plan`);
    const press = async (key, times = 1) => {
        for (let count = 0; count < times; count += 1) {
            await page.keyboard.press(key);
        }
    };
    const focused = () => page.evaluate(() => document.activeElement?.id || document.activeElement?.textContent);
    // The link to the content, the name of the product, and the first field.
    await press("Tab", 3);
    assert.equal(await focused(), "organization");
    await page.keyboard.type("root");
    await press("Tab");
    assert.equal(await focused(), "token");
    await page.keyboard.type(token("root", "ada@example.com", "admin"));
    await press("Enter");
    await page.waitForURL("**/ui/plan");
    await page.getByRole("heading", { name: "Plan", exact: true }).waitFor();
    await page.context().close();
});

test("a page shows what changed without a reload, and keeps open what was opened", async () => {
    const page = await signIn();
    await page.goto(`${origin}/ui/plan`);
    await page.evaluate(() => { window.isSame = true; });
    const file = join(specs, "acme/clusters/wrong.yaml");
    writeFileSync(file, "apiVersion: streamfleet/v1\nkind: Cluster\norganization: acme\nidentifier: wrong\nkafka_unit: 1\n");
    await page.getByText("did you mean kafka_units?").waitFor();
    await page.getByText("acme/clusters/wrong.yaml:5:1").waitFor();
    unlinkSync(file);
    await page.getByText("did you mean kafka_units?").waitFor({ state: "detached" });
    assert.ok(await page.evaluate(() => window.isSame), "the page was not loaded again");
    assert.deepEqual(page.complaints, []);
    await page.context().close();
});

test("a page that is in use says that something waits, and shows it when one leaves", async () => {
    const page = await signIn();
    await page.goto(`${origin}/ui/plan`);
    const link = page.getByRole("main").getByRole("link").first();
    const file = join(specs, "acme/clusters/wrong.yaml");
    const wrong = (field) => writeFileSync(file, `apiVersion: streamfleet/v1\nkind: Cluster\norganization: acme\nidentifier: wrong\n${field}: 1\n`);
    wrong("kafka_unit");
    await page.getByText("did you mean kafka_units?").waitFor();
    const busy = page.getByText("Something has changed here. To see it, leave what you selected, opened or typed: press Escape.");
    assert.equal(await busy.count(), 0);
    for (const use of [() => link.focus(), () => page.getByRole("heading", { level: 1 }).selectText()]) {
        if (use.toString().includes("link") && await link.count() === 0) {
            continue;
        }
        await use();
        wrong("tenancy_mod");
        await busy.waitFor();
        assert.equal(await page.getByText("did you mean tenancy_mode?").count(), 0);
        await page.keyboard.press("Escape");
        await page.getByText("did you mean tenancy_mode?").waitFor();
        await busy.waitFor({ state: "hidden" });
        wrong("kafka_unit");
        await page.getByText("did you mean kafka_units?").waitFor();
    }
    unlinkSync(file);
    await page.getByText("did you mean kafka_units?").waitFor({ state: "detached" });
    assert.deepEqual(page.complaints, []);
    await page.context().close();
});

test("a deletion is read, and approved with the keyboard alone and without script by who may", async () => {
    const viewer = await signIn({}, token("acme", "platform@acme.example.com", "read"), "acme");
    const admin = await signIn({ javaScriptEnabled: false });
    writeFileSync(join(specs, "acme/clusters/sandbox.yaml"), "");
    await viewer.goto(`${origin}/ui/`);
    // A file counts as removed once it has been gone for 30 s. With script, the page shows it by itself.
    await viewer.getByText("waiting to delete cluster sandbox").waitFor({ timeout: 120_000 });
    await admin.goto(`${origin}/ui/`);
    for (const page of [viewer, admin]) {
        await tabTo(page, page.getByRole("link", { name: "Read the plan to approve" }));
        await page.keyboard.press("Enter");
        await page.getByText("the cluster is deleted with all data on its disks").waitFor();
    }
    await viewer.getByText("An administrator of the organization may approve it.").waitFor();
    assert.equal(await viewer.getByRole("button", { name: /^Approve/ }).count(), 0);
    const reader = await signIn({ bypassCSP: true });
    await reader.goto(`${origin}/ui/plan`);
    await reader.getByRole("button", { name: /^Approve/ }).waitFor();
    await isAccessibleEverywhere(reader, "a plan to approve");
    await pressByKey(admin, /^Approve/);
    await admin.getByText("Approved.").waitFor();
    // What stands above a button to approve is what its reader approves.
    await reader.getByText("The plan has changed since you read it.").waitFor();
    await reader.getByRole("button", { name: /^Approve/ }).click();
    await reader.getByText("Nothing was approved").waitFor();
    await until("the cluster is deleted", () => !streamfleet("status", specs).includes("sandbox"));
    assert.deepEqual([...admin.complaints, ...viewer.complaints], []);
    await Promise.all([admin, viewer, reader].map((page) => page.context().close()));
});

test("a cluster that becomes Degraded shows it within two seconds without a reload, and 20 tabs don't hinder clicks", async () => {
    const secret = token("root", "ada@example.com", "admin");
    const page = await signIn({}, secret);
    const ask = async (path) => {
        const start = performance.now();
        const answer = await fetch(`${origin}${path}`, { headers: { Authorization: `Bearer ${secret}` } });
        const body = await answer.json();
        assert.equal(answer.status, 200, JSON.stringify(body));
        return { body, took: performance.now() - start };
    };
    const slowest = async () => {
        const times = [];
        for (let count = 0; count < 100; count += 1) {
            times.push((await ask("/v1/clusters")).took);
        }
        return times.sort((one, other) => one - other)[98];
    };
    const alone = await slowest();
    const paths = ["/", "/plan", "/clusters", "/fleets", "/clusters/acme/orders"];
    const tabs = [];
    for (let count = 0; count < 20; count += 1) {
        const tab = await page.context().newPage();
        await tab.goto(`${origin}/ui${paths[count % paths.length]}`);
        tabs.push(tab);
    }
    for (const name of ["Plan", "Fleets", "Clusters", "Base domains", "Events", "Overview", "Organizations"]) {
        await page.getByRole("navigation", { name: "Sections" }).getByRole("link", { name, exact: true }).click();
        await page.getByRole("heading", { level: 1, name, exact: true }).waitFor();
    }
    // On a busy machine the slowest requests differ by more than the tabs do.
    const beside = await slowest();
    assert.ok(beside < 3 * alone + 100, `p99 is ${beside} ms with 20 tabs, and ${alone} ms without`);
    const watching = tabs.filter((_, index) => ["/", "/clusters", "/clusters/acme/orders"].includes(paths[index % paths.length]));
    await Promise.all(watching.map((tab) => tab.evaluate(() => { window.isSame = true; })));
    // A folder where a manifest belongs can't be replaced by it.
    const manifest = join(specs, ".streamfleet/output/acme/eu/kafka-acme--orders/kafka-orders.yaml");
    rmSync(manifest);
    mkdirSync(manifest);
    const shown = watching.map(async (tab) => {
        await tab.locator(".status", { hasText: "Degraded" }).first().waitFor({ timeout: 60_000 });
        return performance.now();
    });
    daemon.kill("SIGHUP");
    const known = await until("the cluster is Degraded", async () => {
        const { body } = await ask("/v1/clusters/orders");
        return body.status === "Degraded" && performance.now();
    });
    for (const [index, at] of (await Promise.all(shown)).entries()) {
        assert.ok(at - known < 2000, `${watching[index].url()} shows it ${at - known} ms after the API`);
    }
    for (const tab of watching) {
        assert.ok(await tab.evaluate(() => window.isSame), "the page was not loaded again");
    }
    rmSync(manifest, { recursive: true });
    daemon.kill("SIGHUP");
    assert.deepEqual(page.complaints, []);
    await page.context().close();
});

test("unknown addresses and forms that are too large are answered with pages", async () => {
    const page = await signIn({ javaScriptEnabled: false });
    assert.equal((await page.goto(`${origin}/ui/no/such/page/at/all`)).status(), 404);
    await page.getByText("there is no such page").waitFor();
    await page.getByRole("link", { name: "Go to the overview" }).click();
    await page.goto(`${origin}/ui/new/organizations`);
    await page.locator("#f-members").fill("x".repeat(1_200_000));
    await page.getByRole("button", { name: "Review" }).click();
    await page.getByText("the form is larger than 256 KiB, so it was not taken").waitFor();
    await page.context().close();
});

/** Presses Tab until a control has the focus. */
async function tabTo(page, control) {
    const isThere = () => control.evaluate((element) => element === document.activeElement);
    for (let presses = 0; presses < 200; presses += 1) {
        await page.keyboard.press("Tab");
        if (await isThere()) {
            return;
        }
    }
    throw new Error(`no key leads to ${control}`);
}

/** Types into a field in the place of what it has. */
async function typeInto(page, label, text) {
    const field = page.getByRole("main").getByRole("textbox", { name: label }).first();
    await tabTo(page, field);
    await page.keyboard.press("Control+A");
    await page.keyboard.type(text);
}

async function choose(page, name) {
    const button = page.getByRole("main").getByRole("radio", { name });
    await tabTo(page, button);
    await page.keyboard.press("Space");
    assert.ok(await button.isChecked(), `${name} is chosen`);
}

async function pressByKey(page, name) {
    await tabTo(page, page.getByRole("main").getByRole("button", { name }));
    await page.keyboard.press("Enter");
}

test("a fleet and a cluster are created, and the cluster deleted, with the keyboard alone", async () => {
    const page = await signIn();
    const follow = async (name) => {
        await tabTo(page, page.getByRole("main").getByRole("link", { name }));
        await page.keyboard.press("Enter");
    };
    const isStep = (step) => page.getByText(`Step ${step} of 4`).waitFor();
    await page.goto(`${origin}/ui/fleets`);
    await follow("New fleet");
    await isStep(1);
    await tabTo(page, page.getByRole("radio", { name: /^byok/ }));
    await page.keyboard.press("ArrowDown");
    assert.ok(await page.getByRole("radio", { name: /^directory/ }).isChecked());
    await typeInto(page, "Name", "keys");
    await page.keyboard.press("Enter");
    await isStep(2);
    await choose(page, /^Shared/);
    await typeInto(page, "Max clusters", "2");
    await typeInto(page, "Max kafka units", "4");
    await pressByKey(page, "Next");
    await isStep(3);
    await pressByKey(page, "Next");
    await isStep(4);
    await pressByKey(page, "Review");
    await page.getByRole("heading", { name: "File acme/fleets/keys.yaml" }).waitFor();
    await pressByKey(page, "Deploy");
    await page.waitForURL("**/ui/fleets/acme/keys");
    await page.goto(`${origin}/ui/clusters`);
    await follow("New cluster");
    await isStep(1);
    await typeInto(page, "Name", "typed");
    await page.keyboard.press("Enter");
    await isStep(2);
    await choose(page, /^Shared/);
    await typeInto(page, "Kafka units", "1");
    await pressByKey(page, "Next");
    await isStep(3);
    await choose(page, /^eu/);
    await pressByKey(page, "Next");
    await isStep(4);
    await pressByKey(page, "Review");
    await page.getByRole("heading", { name: "File acme/clusters/typed.yaml" }).waitFor();
    await pressByKey(page, "Deploy");
    await page.waitForURL("**/ui/clusters/acme/typed");
    await until("it is written", () => streamfleet("status", specs).includes("typed"));
    await page.reload();
    await follow("Delete…");
    await pressByKey(page, "Review taking the protection away");
    await pressByKey(page, "Save");
    await page.waitForURL("**/ui/clusters/acme/typed");
    const name = page.getByLabel("Type its name, typed, to delete it");
    await until("the protection is gone", async () => {
        await page.goto(`${origin}/ui/clusters/acme/typed/delete`);
        return await name.count() === 1;
    });
    await tabTo(page, name);
    await page.keyboard.type("typed");
    await page.keyboard.press("Enter");
    await page.waitForURL("**/ui/clusters/acme/typed");
    assert.deepEqual(page.complaints, []);
    await page.context().close();
});

/** Creates a cluster by the four steps, with a mistake in the second and the last. */
async function createCluster(page, name) {
    const press = (button) => page.getByRole("main").getByRole("button", { name: button }).click();
    await page.goto(`${origin}/ui/clusters`);
    await page.getByRole("link", { name: "New cluster" }).click();
    await page.getByText("Step 1 of 4").waitFor();
    assert.ok(await page.getByLabel("Redpanda").isDisabled());
    assert.match(await page.getByRole("main").textContent(), /Redpanda\s+Not available: there is no driver/);
    await page.getByLabel("Organization").selectOption("acme");
    await page.locator("#f-identifier").fill(name);
    await press("Next");
    await page.getByText("Step 2 of 4").waitFor();
    await page.getByRole("radio", { name: /^Shared/ }).check();
    await page.getByLabel("Kafka units").fill("many");
    await press("Next");
    await page.getByRole("alert").waitFor();
    assert.match(await page.locator("#f-kafka_units-help").textContent(), /expected an integer/);
    await page.getByLabel("Kafka units").fill("1");
    await press("Next");
    await page.getByText("Step 3 of 4").waitFor();
    await page.getByRole("radio", { name: /^eu/ }).check();
    await press("Next");
    await page.getByText("Step 4 of 4").waitFor();
    await page.getByLabel("Disk of each broker, in GiB").fill("none");
    await press("Review");
    await page.getByRole("alert").waitFor();
    assert.equal(await page.locator("#f-identifier").inputValue(), name, "what was typed is kept");
    await page.getByLabel("Disk of each broker, in GiB").fill("20");
    await page.getByLabel("Kafka version").selectOption("4.3.1");
    await press("Review");
    await page.getByRole("heading", { name: `File acme/clusters/${name}.yaml` }).waitFor();
    await page.getByText("1 to create").waitFor();
    await press("Deploy");
    await page.waitForURL(`**/ui/clusters/acme/${name}`);
}

test("a cluster is created in four steps, with mistakes, and deleted in two", async () => {
    for (const javaScriptEnabled of [true, false]) {
        const name = javaScriptEnabled ? "payments" : "billing";
        const page = await signIn({ javaScriptEnabled });
        await createCluster(page, name);
        await until("it is written", () => streamfleet("status", specs).includes(name));
        await page.goto(`${origin}/ui/clusters/acme/${name}/delete`);
        await page.getByRole("button", { name: "Review taking the protection away" }).click();
        await page.getByText("- deletion_protection: true").or(page.getByText("+ deletion_protection: false")).first().waitFor();
        await page.getByRole("button", { name: "Save" }).click();
        await page.waitForURL(`**/ui/clusters/acme/${name}`);
        await until("the protection is gone", async () => {
            await page.goto(`${origin}/ui/clusters/acme/${name}/delete`);
            return await page.getByLabel(`Type its name, ${name}, to delete it`).count() === 1;
        });
        await page.getByLabel(`Type its name, ${name}, to delete it`).fill(name);
        await page.getByRole("button", { name: "Delete" }).click();
        await page.waitForURL(`**/ui/clusters/acme/${name}`);
        // A refused form has a status of its own, which Chromium reports.
        assert.deepEqual(page.complaints.filter((text) => !text.includes("status of 422")), []);
        await page.context().close();
    }
});

test("a topic and a user of a cluster are created, with a mistake", async () => {
    for (const javaScriptEnabled of [true, false]) {
        const name = javaScriptEnabled ? "refunds" : "returns";
        const page = await signIn({ javaScriptEnabled });
        await page.goto(`${origin}/ui/clusters/acme/orders`);
        await page.getByRole("navigation", { name: "About orders" }).getByRole("link", { name: "Topics" }).click();
        await page.getByRole("link", { name: "New topic" }).click();
        await page.getByLabel("Name").fill("a b");
        await page.getByRole("button", { name: "Review" }).click();
        await page.getByText("is not a topic name").first().waitFor();
        await page.getByLabel("Name").fill(name);
        await page.getByLabel("Partitions").fill("6");
        await page.getByRole("button", { name: "Review" }).click();
        await page.getByText(`+ name: ${name}`).waitFor();
        await page.getByText("makes a topic of 6 partitions").waitFor();
        await page.getByText("curl --fail-with-body --request POST").waitFor({ state: "attached" });
        await page.getByRole("button", { name: "Save" }).or(page.getByRole("button", { name: "Deploy" })).click();
        await page.waitForURL(`**/ui/topics/acme/orders%2F${name}`);
        await until("it is written", () => streamfleet("get", "topics", specs).includes(`acme/orders/${name}`));

        await page.goto(`${origin}/ui/new/users`);
        await page.locator("select[name=\"/cluster\"]").selectOption("orders");
        await page.getByLabel("Name").fill(`team-${name}`);
        await page.getByLabel("Writes to topics").fill(`- ${name}`);
        await page.getByRole("button", { name: "Review" }).click();
        await page.getByText(`+ identifier: team-${name}`).waitFor();
        await page.getByRole("button", { name: "Save" }).or(page.getByRole("button", { name: "Deploy" })).click();
        await page.waitForURL(`**/ui/users/acme/orders%2Fteam-${name}`);
        await until("its Secret is named", async () => {
            await page.goto(`${origin}/ui/users/acme/orders%2Fteam-${name}/connect`);
            return await page.getByText(`kafka-acme--orders/team-${name}`).count() > 0;
        });
        await page.context().close();
    }
});

test("a session that ends leads to the form and back", async () => {
    const page = await signIn();
    await page.goto(`${origin}/ui/events`);
    await page.context().clearCookies();
    await page.getByRole("link", { name: "Plan" }).click();
    await page.getByLabel("API token").fill(token("root", "ada@example.com", "admin"));
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.waitForURL("**/ui/plan");
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    await page.goto(`${origin}/ui/`);
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    await page.context().close();
});

test("what was typed is there after a new sign-in, a reload and the way back", async () => {
    const page = await signIn();
    await page.goto(`${origin}/ui/new/organizations`);
    await page.locator("#f-identifier").fill("globex");
    await page.locator("#f-members").fill("- {email: gus@globex.example, role: admin}");
    await page.context().clearCookies();
    await page.getByRole("button", { name: "Review" }).click();
    await page.getByText("What you typed is kept").waitFor();
    await page.getByLabel("API token").fill(token("root", "ada@example.com", "admin"));
    await page.getByRole("button", { name: "Sign in" }).click();
    const review = page.getByRole("heading", { name: "New organization: review" });
    await review.waitFor();
    await page.reload();
    await review.waitFor();
    await page.getByRole("link", { name: "Change something" }).click();
    assert.equal(await page.locator("#f-identifier").inputValue(), "globex");
    await page.goBack();
    await review.waitFor();
    await page.getByRole("button", { name: "Deploy" }).click();
    await page.waitForURL("**/ui/organizations/globex/globex");
    assert.deepEqual(page.complaints, []);
    await page.context().close();
});
