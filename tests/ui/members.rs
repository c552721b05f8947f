//! The pages about the installation and about members.

use super::forms::{reviewed, text};
use super::{Browser, header};
use crate::api::{Api, new_token};
use crate::support::Tree;

const PERSON: &str = "platform@acme.example.com";

#[test]
fn members_come_and_go_by_a_reviewed_change_of_their_organization() {
    let tree = Tree::example("quickstart");
    let api = Api::start(&tree);
    api.settle();
    let browser = Browser::sign_in(&api, &api.token, "root");
    let page = text(&browser.page("/members"));
    assert!(page.contains(PERSON) && page.contains("organizations.yaml:14"), "{page}");
    let send = |email: &str, role: &str| {
        let fields = [("email", email), ("role", role)];
        browser.submit("/members/acme", &fields)
    };
    let carried_out = |review| {
        let done = browser.submit("/carry-out", &[("draft", &reviewed(&review))]);
        assert_eq!(header(&done, "location").as_deref(), Some("/ui/organizations/acme/acme"));
    };
    let review = send("bo@acme.example.com", "editor");
    assert!(text(&review.body).contains("+   - email: bo@acme.example.com\n"), "{}", text(&review.body));
    carried_out(review);
    // Whose role changes stays where the entry is.
    let review = send("BO@acme.example.com", "viewer");
    let told = text(&review.body);
    assert!(told.contains("-     role: editor\n+     role: viewer\n"), "{told}");
    carried_out(review);
    let review = send("bo@acme.example.com", "");
    assert!(text(&review.body).contains("-   - email: bo@acme.example.com\n"), "{}", text(&review.body));
    carried_out(review);
    assert!(!browser.page("/members").contains("bo@acme"));
    let wrong = send("nobody", "viewer");
    assert!(text(&wrong.body).contains("expected an e-mail address"), "{}", text(&wrong.body));
    // A member who doesn't administer the organization reads.
    let token = new_token(&tree, PERSON, "acme", "read");
    let viewer = Browser::sign_in(&api, &token, "acme");
    let page = viewer.page("/members");
    assert!(page.contains(PERSON) && !page.contains("action=\"/ui/members/acme\""), "{page}");
    let refused = viewer.submit("/members/acme", &[("email", PERSON)]);
    assert_eq!(refused.status, 403, "{}", text(&refused.body));
    assert_eq!(api.serve.stop(), Some(0));
}

#[test]
fn a_page_says_which_specs_are_in_force() {
    let tree = Tree::example("quickstart");
    let api = Api::start_git(&tree);
    api.settle();
    let browser = Browser::sign_in(&api, &api.token, "root");
    let about = api.get("/v1/about").expect(200).body;
    let page = text(&browser.page("/about"));
    for name in ["version", "installation", "mode", "plan"] {
        assert!(page.contains(about[name].as_str().unwrap()), "{name}: {page}");
    }
    for name in ["id", "author"] {
        assert!(page.contains(about["commit"][name].as_str().unwrap()), "{name}: {page}");
    }
    let token = new_token(&tree, PERSON, "acme", "read");
    let page = text(&Browser::sign_in(&api, &token, "acme").page("/about"));
    assert!(!page.contains("Author") && page.contains(about["revision"].as_str().unwrap()), "{page}");
    assert_eq!(api.serve.stop(), Some(0));
}
