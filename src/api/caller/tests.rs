use serde_json::json;
use uuid::Uuid;

use super::*;

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

fn name(text: &str) -> Identifier {
    text.parse().unwrap()
}

fn token(owner: &str, organization: &str, access: Access) -> Token {
    Token {
        purpose: crate::state::TokenPurpose::Api,
        sign_in: None,
        id: Uuid::from_u128(1),
        name: "ci".to_owned(),
        owner: owner.to_owned(),
        organization: organization.to_owned().try_into().unwrap(),
        access,
        created_at: NOW,
        expires_at: NOW + SignedDuration::from_hours(24 * 30),
        revoked_at: None,
    }
}

fn organization(identifier: &str, members: &[(&str, &str)]) -> Organization {
    let members: Vec<_> = members.iter().map(|(email, role)| json!({"email": email, "role": role})).collect();
    serde_json::from_value(json!({"identifier": identifier, "members": members})).unwrap()
}

fn caller(token: &Token, super_users: &[&str], organizations: &[Organization]) -> Caller {
    let super_users: Vec<String> = super_users.iter().map(|email| (*email).to_owned()).collect();
    Caller::of_token(token, &super_users, organizations.iter())
}

/// The highest access of a caller in an organization; asserts that all lower ones are granted, too.
fn most(caller: &Caller, organization: &str) -> &'static str {
    let organization = name(organization);
    let may: Vec<Access> =
        Access::ALL.into_iter().filter(|access| caller.may(&organization, *access)).collect();
    assert_eq!(may, Access::ALL[..may.len()]);
    assert_eq!(caller.sees(&organization), !may.is_empty());
    may.last().map_or("nothing", |access| access.as_str())
}

/// The owner's role in acme, the token's organization and access, and the resulting access in acme, in
/// umbrella (where the owner is an editor), in root, and in an organization that doesn't exist.
const TABLE: &[(&str, &str, &str, [&str; 4])] = &[
    ("none", "acme", "read", ["nothing", "nothing", "nothing", "nothing"]),
    ("none", "acme", "write", ["nothing", "nothing", "nothing", "nothing"]),
    ("none", "acme", "admin", ["nothing", "nothing", "nothing", "nothing"]),
    ("none", "*", "read", ["nothing", "read", "nothing", "nothing"]),
    ("none", "*", "write", ["nothing", "write", "nothing", "nothing"]),
    ("none", "*", "admin", ["nothing", "write", "nothing", "nothing"]),
    ("viewer", "acme", "read", ["read", "nothing", "nothing", "nothing"]),
    ("viewer", "acme", "write", ["read", "nothing", "nothing", "nothing"]),
    ("viewer", "acme", "admin", ["read", "nothing", "nothing", "nothing"]),
    ("viewer", "*", "read", ["read", "read", "nothing", "nothing"]),
    ("viewer", "*", "write", ["read", "write", "nothing", "nothing"]),
    ("viewer", "*", "admin", ["read", "write", "nothing", "nothing"]),
    ("editor", "acme", "read", ["read", "nothing", "nothing", "nothing"]),
    ("editor", "acme", "write", ["write", "nothing", "nothing", "nothing"]),
    ("editor", "acme", "admin", ["write", "nothing", "nothing", "nothing"]),
    ("editor", "*", "read", ["read", "read", "nothing", "nothing"]),
    ("editor", "*", "write", ["write", "write", "nothing", "nothing"]),
    ("editor", "*", "admin", ["write", "write", "nothing", "nothing"]),
    ("admin", "acme", "read", ["read", "nothing", "nothing", "nothing"]),
    ("admin", "acme", "write", ["write", "nothing", "nothing", "nothing"]),
    ("admin", "acme", "admin", ["admin", "nothing", "nothing", "nothing"]),
    ("admin", "*", "read", ["read", "read", "nothing", "nothing"]),
    ("admin", "*", "write", ["write", "write", "nothing", "nothing"]),
    ("admin", "*", "admin", ["admin", "write", "nothing", "nothing"]),
    ("super", "acme", "read", ["read", "nothing", "nothing", "nothing"]),
    ("super", "acme", "write", ["write", "nothing", "nothing", "nothing"]),
    ("super", "acme", "admin", ["admin", "nothing", "nothing", "nothing"]),
    ("super", "root", "admin", ["nothing", "nothing", "admin", "nothing"]),
    ("super", "*", "read", ["read", "read", "read", "read"]),
    ("super", "*", "write", ["write", "write", "write", "write"]),
    ("super", "*", "admin", ["admin", "admin", "admin", "admin"]),
    ("admin", "umbrella", "admin", ["nothing", "write", "nothing", "nothing"]),
    ("admin", "root", "admin", ["nothing", "nothing", "nothing", "nothing"]),
];

#[test]
fn a_token_is_good_for_what_it_is_for_and_its_owner_may_whichever_is_less() {
    for (role, scope, access, expected) in TABLE {
        let access = Access::ALL.into_iter().find(|known| known.as_str() == *access).unwrap();
        let mut members = vec![("bob@example.com", "admin")];
        if !["none", "super"].contains(role) {
            members.push(("Ada@Example.com", role));
        }
        let organizations = [
            organization("acme", &members),
            // Members of `root` get no access, even if the rule that forbids them ever failed.
            organization("root", &[("ada@example.com", "admin")]),
            organization("umbrella", &[("ADA@example.com", "editor")]),
        ];
        let super_users: &[&str] =
            if *role == "super" { &["grace@example.com", "ADA@EXAMPLE.COM"] } else { &[] };
        let caller = caller(&token("ada@example.com", scope, access), super_users, &organizations);
        let found = ["acme", "umbrella", "root", "nowhere"].map(|organization| most(&caller, organization));
        assert_eq!(found, *expected, "{role} {scope} {access}");
        let is_super = (*role, *scope, access) == ("super", "*", Access::Admin);
        assert_eq!(caller.is_super(), is_super, "{role} {scope} {access}");
    }
}

#[test]
fn who_is_named_twice_has_the_lesser_role_and_what_looks_alike_is_another_person() {
    let members = [("ada@example.com", "admin"), ("ADA@example.com", "viewer")];
    let token = token("ada@example.com", "*", Access::Admin);
    assert_eq!(most(&caller(&token, &[], &[organization("acme", &members)]), "acme"), "read");
    // U+212A, the Kelvin sign, becomes a `k` in lower case.
    let alike = organization("acme", &[("\u{212a}ay@example.com", "admin")]);
    let kay = self::token("kay@example.com", "*", Access::Admin);
    assert_eq!(most(&caller(&kay, &["\u{212a}ay@example.com"], &[alike]), "acme"), "nothing");
}

#[test]
fn who_asks_on_the_socket_may_do_everything() {
    let caller = Caller::of_user(1000, None);
    assert!(caller.is_super());
    assert_eq!(most(&caller, "acme"), "admin");
    assert_eq!(caller.actor(), "uid 1000 (socket)");
    let named = Caller::of_user(1000, Some("ann".to_owned()));
    assert_eq!(named.actor(), "ann (command line, uid 1000)");
    let Author { name, email } = caller.author();
    assert_eq!((name.as_str(), email.as_str()), ("uid 1000", "uid-1000@localhost"));
}

#[test]
fn what_somebody_does_is_told_by_their_address_and_token() {
    let token = token("ada@example.com", "*", Access::Read);
    let caller = caller(&token, &[], &[]);
    assert_eq!(caller.actor(), "ada@example.com (token ci)");
    let Author { name, email } = caller.author();
    assert_eq!((name.as_str(), email.as_str()), ("ada", "ada@example.com"));
    assert_eq!(caller.token(), Some(&token));
}

fn order(owner: &str, organization: &str, access: Access, days: u32) -> TokenOrder {
    let organization = organization.to_owned().try_into().unwrap();
    TokenOrder { name: "more".to_owned(), owner: owner.to_owned(), organization, access, days }
}

#[test]
fn a_token_makes_none_that_is_more_than_itself() {
    let (ada, bob) = ("ada@example.com", "bob@example.com");
    let acme = [organization("acme", &[(ada, "admin")])];
    let own = caller(&token(ada, "acme", Access::Write), &[], &acme);
    let wide = caller(&token(ada, "*", Access::Write), &[], &acme);
    let ends =
        "a token can't create one that expires later, and this one expires at 1970-01-31T00:00:00.000000Z";
    let others = "creating tokens for others requires a super user";
    let cases = [
        (&own, order(ada, "acme", Access::Write, 30), None),
        (&own, order("ADA@example.com", "acme", Access::Read, 1), None),
        (
            &own,
            order(ada, "acme", Access::Admin, 1),
            Some(("/access", "a token for `write` can't create one for `admin`")),
        ),
        (&own, order(ada, "acme", Access::Write, 31), Some(("/days", ends))),
        (
            &own,
            order(ada, "umbrella", Access::Read, 1),
            Some(("/organization", "a token for organization `acme` can't create one for `umbrella`")),
        ),
        (
            &own,
            order(ada, "*", Access::Read, 1),
            Some(("/organization", "a token for organization `acme` can't create one for all organizations")),
        ),
        (&own, order(bob, "acme", Access::Read, 1), Some(("/owner", others))),
        (&wide, order(ada, "umbrella", Access::Read, 1), None),
        (&wide, order(ada, "*", Access::Write, 1), None),
        (&wide, order(ada, "*", Access::Write, u32::MAX), Some(("/days", ends))),
    ];
    for (caller, order, expected) in cases {
        let found = caller.excess(&order, NOW);
        let found = found.as_ref().map(|(pointer, why)| (*pointer, why.as_str()));
        assert_eq!(found, expected, "{order:?}");
    }
    // The default lifetime is what remains of the caller's own token.
    let days = |caller: &Caller, seconds| caller.usual_days(NOW + SignedDuration::from_secs(seconds));
    assert_eq!([days(&own, 0), days(&own, 1), days(&own, 29 * 86_400 + 1)], [30, 29, 1]);
    assert_eq!(days(&Caller::of_user(0, None), 0), 90);
    let most = order(bob, "*", Access::Admin, 365);
    let excess = |caller: Caller| caller.excess(&most, NOW).map(|(pointer, _)| pointer);
    assert_eq!(excess(caller(&token(ada, "*", Access::Admin), &[ada], &[])), None);
    assert_eq!(excess(caller(&token(ada, "acme", Access::Admin), &[ada], &[])), Some("/owner"));
    assert_eq!(excess(Caller::of_user(0, None)), None);
}

#[test]
fn who_may_not_do_something_is_told_whether_the_role_or_the_token_is_in_the_way() {
    let ada = "ada@example.com";
    let acme = [organization("acme", &[(ada, "viewer")]), organization("umbrella", &[(ada, "editor")])];
    let of = |scope: &str, access| caller(&token(ada, scope, access), &[], &acme);
    let doing = "creating clusters";
    let role = "ask an administrator of the organization for that role";
    let another = "use a token with more access; `streamfleet token create` creates one";
    for (caller, organization, access, expected) in [
        (
            of("*", Access::Admin),
            "acme",
            Access::Write,
            (
                "creating clusters requires the role `editor` in organization `acme`, and ada@example.com has `viewer` \
                 there",
                role,
            ),
        ),
        (
            of("*", Access::Admin),
            "umbrella",
            Access::Admin,
            (
                "creating clusters requires the role `admin` in organization `umbrella`, and ada@example.com has `editor` \
                 there",
                role,
            ),
        ),
        // A token with more access alone wouldn't help.
        (
            of("acme", Access::Read),
            "acme",
            Access::Write,
            (
                "creating clusters requires the role `editor` in organization `acme`, and ada@example.com has `viewer` \
                 there",
                role,
            ),
        ),
        (
            of("*", Access::Read),
            "umbrella",
            Access::Write,
            (
                "creating clusters in organization `umbrella` requires a token for `write`, and this one is for `read`",
                another,
            ),
        ),
        (
            caller(&token(ada, "acme", Access::Read), &[ada], &acme),
            "acme",
            Access::Admin,
            (
                "creating clusters in organization `acme` requires a token for `admin`, and this one is for `read` in \
                 organization `acme`",
                another,
            ),
        ),
    ] {
        assert!(!caller.may(&name(organization), access));
        let (why, hint) = caller.lacks(doing, &name(organization), access);
        assert_eq!((why.as_str(), hint), expected);
    }
    let told = |(why, hint): (String, &'static str)| format!("{why}; {hint}");
    assert_eq!(
        told(of("*", Access::Admin).lacks_super("creating organizations")),
        "creating organizations requires a super user, and ada@example.com is not one; ask a super user; \
         `api.super_user_emails` in the settings lists them"
    );
    assert_eq!(
        told(caller(&token(ada, "acme", Access::Admin), &[ada], &acme).lacks_super("creating organizations")),
        format!(
            "creating organizations requires a token for `admin` in all organizations, and this one is for `admin` in \
             organization `acme`; {another}"
        )
    );
    assert_eq!(
        told(of("*", Access::Read).lacks_everywhere("planning", Access::Write)),
        format!("planning requires a token for `write`, and this one is for `read`; {another}")
    );
    assert_eq!(
        told(of("acme", Access::Admin).lacks_everywhere("planning", Access::Write)),
        "planning requires the role `editor` in an organization of this token, and ada@example.com has it in none; ask an \
         administrator of an organization for that role"
    );
}

#[test]
fn a_token_revokes_itself_and_what_is_no_more_than_itself() {
    let (ada, bob) = ("ada@example.com", "bob@example.com");
    let another = |owner: &str, organization: &str, access| {
        let id = Uuid::from_u128(2);
        Token { id, ..token(owner, organization, access) }
    };
    let own = token(ada, "acme", Access::Write);
    let calls = caller(&own, &[], &[organization("acme", &[(ada, "admin")])]);
    let cases = [
        (own.clone(), true, true),
        (another(ada, "acme", Access::Read), true, true),
        (another(ada, "acme", Access::Admin), true, false),
        (another(ada, "*", Access::Read), true, false),
        (another(bob, "acme", Access::Read), false, false),
    ];
    for (token, sees, may) in cases {
        assert_eq!((calls.sees_token(&token), calls.may_revoke(&token)), (sees, may), "{token}");
        assert!(Caller::of_user(0, None).sees_token(&token) && Caller::of_user(0, None).may_revoke(&token));
    }
}

#[test]
fn what_a_token_lacks_is_told_when_it_is_made() {
    let acme = [organization("acme", &[("ada@example.com", "viewer")])];
    let of = |token: Token, super_users: &[&str]| {
        let super_users: Vec<String> = super_users.iter().map(|email| (*email).to_owned()).collect();
        shortfall("token", &token, &super_users, acme.iter()).unwrap_or_default()
    };
    assert_eq!(of(token("ada@example.com", "acme", Access::Read), &[]), "");
    assert_eq!(of(token("ada@example.com", "acme", Access::Write), &["ada@example.com"]), "");
    assert_eq!(of(token("ada@example.com", "root", Access::Admin), &["ada@example.com"]), "");
    assert_eq!(
        of(token("ada@example.com", "none", Access::Write), &["ada@example.com"]),
        "organization none is not in the specs; the token is useless until it is"
    );
    assert_eq!(
        of(token("ada@example.com", "acme", Access::Write), &[]),
        "ada@example.com may only read in organization acme; the token can't do more until that changes"
    );
    assert_eq!(
        of(token("bob@example.com", "acme", Access::Write), &[]),
        "bob@example.com is neither a member of organization acme in the specs nor a super user; the token is useless \
         until that changes"
    );
    assert_eq!(
        of(token("bob@example.com", "*", Access::Write), &[]),
        "bob@example.com is neither a member of any organization in the specs nor a super user; the token is useless until \
         that changes"
    );
}
