//! The plan between the reading and the approval.

use super::forms::{hidden, text};
use super::{Browser, header};
use crate::api::{Api, new_token};
use crate::support::Tree;

const SANDBOX: &str = "acme/clusters/sandbox.yaml";
const SPARE: &str = "acme/clusters/spare.yaml";

#[test]
fn a_plan_that_changed_since_it_was_read_is_not_approved_and_what_differs_is_marked() {
    let tree = Tree::example("quickstart");
    let spare = tree.read(SANDBOX).replace("identifier: sandbox", "identifier: spare");
    tree.write(SPARE, spare);
    let api = Api::start(&tree);
    api.settle();
    tree.write(SANDBOX, "");
    let browser = Browser::sign_in(&api, &api.token, "root");
    let waits = |cluster: &str, read: &str| {
        let told = format!("waiting to delete cluster <strong>{cluster}</strong>");
        api.serve.until(&told, || {
            let page = browser.page("/plan");
            hidden(&page, "id").filter(|id| id != read && page.contains(&told))
        })
    };
    let read = waits("sandbox", "");
    // Somebody takes out another cluster meanwhile: an approval would be for both.
    tree.write(SPARE, "");
    let now = waits("spare", &read);
    let refused = browser.submit("/plan/approve", &[("id", &read)]);
    let place = header(&refused, "location").unwrap();
    assert_eq!((refused.status, place.as_str()), (303, format!("/ui/plan?other={read}").as_str()));
    let page = browser.page(place.trim_start_matches("/ui"));
    let told = text(&page);
    assert!(told.contains("Nothing was approved: the plan has changed since you read it"), "{told}");
    assert!(told.contains("what differs is marked"), "{told}");
    let changes: Vec<&str> = page.split("<article").skip(1).collect();
    let of = |cluster: &str| {
        *changes.iter().find(|it| it.contains(&format!("<strong>{cluster}</strong>"))).unwrap()
    };
    assert!(of("spare").contains("New since you read the plan"), "{page}");
    assert!(!of("sandbox").contains("since you read the plan"), "{page}");
    // Somebody who didn't read the other plan has nothing to compare with.
    let member = new_token(&tree, "platform@acme.example.com", "acme", "read");
    let page = Browser::sign_in(&api, &member, "acme").page(place.trim_start_matches("/ui"));
    assert!(!page.contains("New since you read the plan"), "{page}");
    // A page of one fleet leads back to itself.
    let fields = [("id", read.as_str()), ("from", "/plan?organization=acme&fleet=eu")];
    let refused = browser.submit("/plan/approve", &fields);
    let expected = format!("/ui/plan?organization=acme&fleet=eu&other={read}");
    assert_eq!(header(&refused, "location"), Some(expected));
    for elsewhere in ["https://evil.example.com/", "//evil.example.com", "/sign-out"] {
        let refused = browser.submit("/plan/approve", &[("id", read.as_str()), ("from", elsewhere)]);
        assert_eq!(header(&refused, "location"), Some(format!("/ui/plan?other={read}")));
    }
    let approved = browser.submit("/plan/approve", &[("id", &now)]);
    let place = header(&approved, "location").unwrap();
    let at: i64 = place.strip_prefix("/ui/plan?approved=").unwrap().parse().unwrap();
    let told = "Approved. The steps begin with the next round.";
    let page = browser.get(place.trim_start_matches("/ui"));
    assert!(page.body.contains(told) && header(&page, "etag").is_none(), "{}", page.head);
    // Later, the same page says it no more.
    for other in [at - 31, at + 600, 1] {
        let page = browser.get(&format!("/plan?approved={other}"));
        assert!(!page.body.contains(told) && header(&page, "etag").is_some(), "{other}: {}", page.head);
    }
    assert_eq!(api.serve.stop(), Some(0));
}

#[test]
fn a_deletion_is_bound_to_the_plan_that_was_read() {
    let tree = Tree::example("quickstart");
    let api = Api::start(&tree);
    api.settle();
    let browser = Browser::sign_in(&api, &api.token, "root");
    let path = "/clusters/acme/sandbox/delete";
    let page = browser.page(path);
    let etag = hidden(&page, "etag").unwrap().replace("&#34;", "\"");
    let read = hidden(&page, "plan").unwrap();
    assert_eq!(hidden(&browser.page(path), "plan").as_ref(), Some(&read), "it is the same each time");
    for other in ["", &read.replace(|digit: char| digit.is_ascii_digit(), "f")] {
        let fields = [("etag", etag.as_str()), ("plan", other), ("confirm", "sandbox")];
        let refused = browser.submit(path, &fields);
        assert_eq!(refused.status, 412, "{}", text(&refused.body));
        let told = text(&refused.body);
        assert!(
            told.contains("nothing was deleted: what the deletion changes is no longer what you read"),
            "{told}"
        );
        assert!(told.contains("the cluster is deleted with all data on its disks"), "the plan now: {told}");
        assert_eq!(hidden(&refused.body, "plan").as_ref(), Some(&read));
    }
    assert!(tree.read(SANDBOX).contains("identifier: sandbox"));
    let fields = [("etag", etag.as_str()), ("plan", &read), ("confirm", "sandbox")];
    let done = browser.submit(path, &fields);
    assert_eq!(done.status, 303, "{}", done.body);
    assert!(!tree.path().join(SANDBOX).exists());
    assert_eq!(api.serve.stop(), Some(0));
}
