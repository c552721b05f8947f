// Every page is accessible in light and dark and at all widths, as are the pages that forms lead to.
import assert from "node:assert/strict";
import { test } from "node:test";
import { isAccessible, isAccessibleEverywhere, origin, PAGES, signIn, WIDTHS } from "./harness.js";

for (const colorScheme of ["light", "dark"]) {
    for (const width of WIDTHS) {
        test(`every page is accessible in ${colorScheme}, ${width} pixels wide`, async () => {
            const page = await signIn({ colorScheme, viewport: { width, height: 900 }, bypassCSP: true });
            for (const path of PAGES) {
                await page.goto(`${origin}/ui${path}`);
                await isAccessible(page, path);
            }
            assert.deepEqual(page.complaints, []);
            await page.context().close();
        });
    }
}

test("reviews, forms with mistakes and the sign-in are accessible", async () => {
    const page = await signIn({ bypassCSP: true });
    const query = (values) => new URLSearchParams(Object.entries(values)).toString();
    const review = async (heading) => {
        await page.getByRole("button", { name: "Review" }).click();
        await page.getByRole("heading", { name: heading }).waitFor();
    };
    const cluster = { "/cluster_type": "kafka", "/organization": "acme", "/identifier": "axe" };
    // A name that is taken leads back to its step, with all that was typed.
    await page.goto(`${origin}/ui/new/clusters?${query({ ...cluster, "/identifier": "orders", step: 2 })}`);
    await page.getByText("Step 1 of 4").waitFor();
    assert.match(await page.locator("#f-identifier-help").textContent(), /exists already/);
    assert.equal(await page.locator("#f-identifier").inputValue(), "orders");
    await isAccessibleEverywhere(page, "a step with a mistake");
    const large = { ...cluster, "/tenancy_mode": "Shared", "/kafka_units": "200" };
    await page.goto(`${origin}/ui/new/clusters?${query({ ...large, step: 3 })}`);
    await page.getByText("The cluster fits on no fleet").waitFor();
    await isAccessibleEverywhere(page, "a cluster that fits nowhere");
    await page.goto(`${origin}/ui/new/clusters?${query({ ...large, "/kafka_units": "1", "/infrastructure": "eu", step: 4 })}`);
    await page.getByLabel("Disk of each broker, in GiB").fill("none");
    await review("New cluster");
    await page.getByRole("alert").waitFor();
    await isAccessibleEverywhere(page, "a form with a mistake");
    await page.getByLabel("Disk of each broker, in GiB").fill("20");
    await review("New cluster: review");
    await isAccessibleEverywhere(page, "the review of a cluster");
    await page.goto(`${origin}/ui/clusters/acme/orders/edit`);
    await page.getByLabel("Kafka units").fill("2");
    await review("Change orders: review");
    await isAccessibleEverywhere(page, "the review of a change");
    const kubeconfig = JSON.stringify({
        apiVersion: "v1", kind: "Config", "current-context": "a",
        clusters: [{ name: "a", cluster: { server: "https://127.0.0.1:1" } }], users: [{ name: "a", user: { token: "none" } }],
        contexts: [{ name: "a", context: { cluster: "a", user: "a" } }],
    });
    const fleet = {
        "/infra_type": "byok", "/organization": "acme", "/identifier": "axe", "/tenancy_mode": "Shared", "/max_tenants": "1",
        "/max_kafka_units": "1", "/domain": "kafka.acme.example.com",
    };
    await page.goto(`${origin}/ui/new/fleets?${query({ ...fleet, step: 4 })}`);
    await page.locator("#f-advanced_config-kubeconfig").fill(kubeconfig);
    await review("New fleet: review");
    await page.getByRole("button", { name: "Check this cluster" }).click();
    await page.getByText("You may deploy all the same").waitFor();
    await page.getByRole("button", { name: "Deploy anyway" }).waitFor();
    await isAccessibleEverywhere(page, "the review of a fleet that can't be reached");
    await page.context().clearCookies();
    await page.goto(`${origin}/ui/`);
    await page.getByLabel("API token").fill("none");
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("alert").waitFor();
    await isAccessibleEverywhere(page, "a sign-in that was refused");
    // A refused form has a status of its own, which Chromium reports.
    assert.deepEqual(page.complaints.filter((text) => !/status of 4/.test(text)), []);
    await page.context().close();
});
