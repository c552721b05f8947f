//! Links that sign in to the web UI, and who the caller is.

use std::fs;

use serde_json::{Value, json};

use super::roles::two_organizations;
use super::{Api, ROOT, Reply, new_token};
use crate::support::Tree;

/// The token in a link.
#[track_caller]
fn token_in(api: &Api<'_>, created: &Reply) -> String {
    let link = created.body["link"].as_str().unwrap();
    let digits = link
        .strip_prefix(&format!("http://{}/ui/sign-in?", api.address))
        .and_then(|query| query.split("link=").nth(1))
        .expect(link);
    assert!(digits.len() == 64 && digits.bytes().all(|byte| byte.is_ascii_hexdigit()), "{link}");
    format!("sf_{digits}")
}

#[test]
fn a_link_holds_a_token_of_the_person_for_a_quarter_of_an_hour_and_no_log_has_it() {
    let tree = two_organizations();
    let api = Api::start(&tree);
    api.settle();
    let order = json!({"email": "editor@x.example", "organization": "acme"});
    let created = api.call("POST /v1/sign-in-links", order).expect(201);
    let token = token_in(&api, &created);
    let tokens = api.get("/v1/tokens?page_size=200").body;
    let links: Vec<&Value> =
        tokens["items"].as_array().unwrap().iter().filter(|kept| kept["name"] == "sign-in link").collect();
    let [.., kept] = links.as_slice() else { panic!("{tokens:#}") };
    assert_eq!((&kept["purpose"], &kept["owner"]), (&"link".into(), &"editor@x.example".into()));
    assert_eq!((&kept["organization"], &kept["access"]), (&"acme".into(), &"admin".into()));
    assert_eq!(kept["expires_at"], created.body["expires_at"]);
    assert_eq!(created.body["warnings"], json!([]), "who isn't an administrator may sign in");
    assert_eq!(created.body["organization"], "acme");
    let time = |name: &str| kept[name].as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
    assert_eq!(time("expires_at").duration_since(time("created_at")).as_mins(), 15);
    // By default a super user signs in for all organizations, and a member for their only one.
    for (email, organization) in
        [(ROOT, "*"), ("Root@streamfleet.example.com", "*"), ("viewer@x.example", "acme")]
    {
        let created = api.call("POST /v1/sign-in-links", json!({"email": email})).expect(201);
        assert_eq!(created.body["organization"], organization, "{email}");
    }
    let all = json!({"email": ROOT, "organization": "root"});
    assert_eq!(api.call("POST /v1/sign-in-links", all).expect(201).body["organization"], "*");
    // A caller who never can use the link is told.
    let useless = |email: &str, organization: &str| {
        let order = json!({"email": email, "organization": organization});
        api.call("POST /v1/sign-in-links", order).expect(201).body["warnings"].clone()
    };
    assert_eq!(
        useless("bob@example.com", "acme"),
        json!([
            "bob@example.com is neither a member of organization acme in the specs nor a super user; the link is useless \
             until that changes"
        ])
    );
    assert_eq!(
        useless("viewer@x.example", "root"),
        json!([] as [&str; 0]),
        "it is good for the organizations that the person is a member of"
    );
    let none = json!(["organization acne is not in the specs; the link is useless until it is"]);
    assert_eq!(useless(ROOT, "acne"), none);
    let log = api.serve.log();
    assert_eq!(api.serve.stop(), Some(0));
    assert!(!log.contains(&token[3..]), "{log}");
    let audit = fs::read_to_string(tree.beside("state/audit.jsonl")).unwrap();
    let made = format!(
        "created token sign-in link ({}) of editor@x.example: admin in",
        kept["id"].as_str().unwrap()
    );
    assert!(audit.contains(&made) && !audit.contains(&token[3..]), "{audit}");
}

#[test]
fn what_is_wrong_with_a_link_that_is_asked_for_is_told_by_its_fields() {
    let tree = two_organizations();
    let api = Api::start(&tree);
    api.settle();
    let members = "members:\n  - {email: editor@x.example, role: viewer}\n";
    let more = format!("apiVersion: streamfleet/v1\nkind: Organization\nidentifier: more\n{members}");
    tree.write("more.yaml", more);
    api.serve.until("there is a third organization", || {
        (api.get("/organizations/more").status == 200).then_some(())
    });
    let ask = |body: Value, pointer: &str, detail: &str, hint: &str| {
        let refused = api.call("POST /v1/sign-in-links", body);
        refused.refused(422, "invalid", detail);
        let error = json!({"pointer": pointer, "detail": detail, "hint": hint, "file": null, "line": null});
        assert_eq!(refused.body["errors"], json!([error]), "{:#}", refused.body);
    };
    ask(json!({}), "/email", "missing key `email`", "add `email`: an e-mail address");
    ask(
        json!({"email": "ada"}),
        "/email",
        "`email`: expected an e-mail address, found the string `ada`",
        "send an e-mail address",
    );
    ask(
        json!({"email": ROOT, "days": 3}),
        "/days",
        "unknown key `days`",
        "the fields are `email` and `organization`",
    );
    ask(
        json!({"email": ROOT, "organization": "*"}),
        "/organization",
        "`organization`: `*` is not an identifier: lower-case letters, digits and single hyphens, starting with a letter, at \
         most 32 characters",
        "use the identifier of an organization, or `root` for all",
    );
    ask(
        json!({"email": "bob@example.com"}),
        "/organization",
        "bob@example.com is neither a super user nor a member of an organization in the specs",
        "check the address; who signs in has to be one of the `members` of an organization, or a super user by the settings",
    );
    ask(
        json!({"email": "editor@x.example"}),
        "/organization",
        "editor@x.example is a member of several organizations: acme, more",
        "name one of them as the organization to sign in for",
    );
    // Only super users let others in, whatever their token is for.
    let order = json!({"email": "admin@x.example", "organization": "acme"});
    let admin = new_token(&tree, "admin@x.example", "*", "admin");
    api.call_as(&admin, "POST /v1/sign-in-links", &[], order.clone()).refused(
        403,
        "forbidden",
        "creating sign-in links requires a super user, and admin@x.example is not one",
    );
    let lesser = new_token(&tree, ROOT, "*", "write");
    api.call_as(&lesser, "POST /v1/sign-in-links", &[], order.clone()).refused(
        403,
        "forbidden",
        "creating sign-in links requires a token for `admin` in all organizations, and this one is for `write`",
    );
    // An owner has only so many valid tokens.
    for _ in 0..99 {
        api.call("POST /v1/sign-in-links", order.clone()).expect(201);
    }
    ask(
        order,
        "/email",
        "admin@x.example has 100 valid tokens, which is the limit",
        "revoke tokens that aren't needed",
    );
    assert_eq!(api.serve.stop(), Some(0));
}

/// The line of a text in a file that contains it once.
#[track_caller]
fn line(tree: &Tree, file: &str, text: &str) -> usize {
    let lines: Vec<usize> = (1..)
        .zip(tree.read(file).lines())
        .filter(|(_, line)| line.contains(text))
        .map(|(at, _)| at)
        .collect();
    assert_eq!(lines.len(), 1, "{text}");
    lines[0]
}

#[test]
fn a_caller_is_told_who_they_are_and_which_line_says_so() {
    let tree = two_organizations();
    let api = Api::start(&tree);
    api.settle();
    let me = |token: &str| api.call_as(token, "GET /v1/me", &[], Value::Null).expect(200).body;
    let file = "organizations.yaml";
    let acme = |role: &str, access: &str, email: &str| {
        let source = json!({"path": file, "line": line(&tree, file, email)});
        json!({"identifier": "acme", "role": role, "access": access, "source": source})
    };
    let editor = me(&new_token(&tree, "Editor@x.example", "*", "admin"));
    let (id, ends) = (editor["token_id"].clone(), editor["expires_at"].clone());
    assert!(ends.as_str().unwrap().ends_with('Z') && id.as_str().unwrap().len() == 36, "{editor:#}");
    assert_eq!(
        editor,
        json!({
            "email": "Editor@x.example", "name": "test", "token_id": id, "organization": "*", "access": "admin",
            "sign_in": null, "created_at": editor["created_at"], "expires_at": ends, "revision": editor["revision"], "is_super_user": false,
            "organizations": [acme("editor", "write", "editor@x.example")],
        })
    );
    // The token is for less than the role, or for another organization, or the owner has no role.
    let organizations = |owner: &str, organization: &str, access: &str| {
        me(&new_token(&tree, owner, organization, access))["organizations"].clone()
    };
    assert_eq!(
        organizations("admin@x.example", "acme", "read"),
        json!([acme("admin", "read", "admin@x.example")])
    );
    assert_eq!(organizations("admin@x.example", "other", "admin"), json!([]));
    assert_eq!(organizations("nobody@x.example", "*", "admin"), json!([]));
    let root = me(&api.token);
    assert_eq!((&root["email"], &root["is_super_user"]), (&ROOT.into(), &true.into()));
    assert_eq!((&root["organizations"], &root["organization"]), (&json!([]), &"*".into()));
    let one = me(&new_token(&tree, ROOT, "acme", "read"));
    assert_eq!((&one["is_super_user"], &one["access"]), (&true.into(), &"read".into()));
    // What the API wrote counts at once. A super user may do more than their role.
    let members = json!({"members": [
        {"email": "admin@x.example", "role": "admin"}, {"email": ROOT, "role": "viewer"},
    ]});
    api.call("PATCH /organizations/acme", members).expect(200);
    assert_eq!(me(&api.token)["organizations"], json!([acme("viewer", "admin", ROOT)]));
    assert_eq!(organizations("editor@x.example", "*", "admin"), json!([]));
    assert_eq!(api.serve.stop(), Some(0));
}

#[test]
fn sessions_are_listed_and_ended_by_those_whose_they_are_and_by_super_users() {
    let tree = two_organizations();
    let api = Api::start(&tree);
    api.settle();
    let [editor, viewer] =
        ["editor@x.example", "viewer@x.example"].map(|owner| new_token(&tree, owner, "acme", "admin"));
    let begin = |token: &str| api.call_as(token, "POST /v1/sessions", &[], json!({})).expect(201).body;
    let (of_editor, of_viewer) = (begin(&editor), begin(&viewer));
    let ids = |token: &str, list: &str| -> Vec<String> {
        let items = api.call_as(token, &format!("GET {list}"), &[], Value::Null).expect(200).body;
        let items = items["items"].as_array().unwrap().clone();
        items.iter().map(|item| item["id"].as_str().unwrap().to_owned()).collect()
    };
    let id = |session: &Value| session["id"].as_str().unwrap().to_owned();
    assert_eq!(ids(&editor, "/v1/sessions"), [id(&of_editor)]);
    assert_eq!(ids(&api.token, "/v1/sessions"), [id(&of_editor), id(&of_viewer)]);
    for list in [ids(&editor, "/v1/tokens"), ids(&api.token, "/v1/tokens?page_size=200")] {
        assert!(!list.contains(&id(&of_editor)), "tokens are listed without sessions");
    }
    let end =
        |token: &str, id: &str| api.call_as(token, &format!("DELETE /v1/sessions/{id}"), &[], Value::Null);
    let missing = |id: &str| format!("there is no session `{id}`, or the caller may not see it");
    end(&viewer, &id(&of_editor)).refused(404, "not_found", &missing(&id(&of_editor)));
    // A token of the API is no session.
    let own = ids(&editor, "/v1/tokens").remove(0);
    end(&editor, &own).refused(404, "not_found", &missing(&own));
    let uses = |session: &Value| {
        api.call_as(session["token"].as_str().unwrap(), "GET /v1/me", &[], Value::Null).status
    };
    assert_eq!((uses(&of_editor), uses(&of_viewer)), (200, 200));
    end(&editor, &id(&of_editor)).expect(204);
    end(&editor, &id(&of_editor)).expect(204);
    end(&api.token, &id(&of_viewer)).expect(204);
    assert_eq!((uses(&of_editor), uses(&of_viewer)), (401, 401));
    assert_eq!(api.serve.stop(), Some(0));
}
