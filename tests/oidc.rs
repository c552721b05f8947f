//! Sign-in to the web UI by OpenID Connect, with an issuer that may lie.

mod issuer;

use std::collections::BTreeMap;
use std::fs;

use serde_json::{Value, json};

use crate::api::{Api, ROOT};
use crate::service::http::{Answer, send};
use crate::support::Tree;
use issuer::{CLIENT, Issuer, SECRET, Signature, TokenAnswer};

const MEMBER: &str = "platform@acme.example.com";
const SERVE: &str = "serve --specs tree --config settings.toml";
const REFUSED: &str = "you were not signed in";

/// A daemon that trusts an issuer.
struct Installation<'t> {
    api: Api<'t>,
    issuer: Issuer,
}

/// A browser on its way to the issuer.
struct Departed {
    /// The query of the issuer's page.
    asked: BTreeMap<String, String>,
    cookie: String,
}

impl<'t> Installation<'t> {
    fn start(tree: &'t Tree, more: &str) -> Self {
        let issuer = Issuer::start();
        fs::write(tree.beside("client-secret"), format!("{SECRET}\n")).unwrap();
        let url = &issuer.url;
        let oidc = format!(
            "[api.oidc]\nissuer = \"{url}\"\nclient_id = \"{CLIENT}\"\nclient_secret_file = \"client-secret\"\n{more}"
        );
        let api = Api::start_with(tree, SERVE, &oidc);
        api.settle();
        Installation { api, issuer }
    }

    fn get(&self, path: &str, cookie: &str) -> Answer {
        send(&self.api.address, &format!("GET {path}"), &[("Cookie", cookie)], "")
    }

    #[track_caller]
    fn depart(&self, organization: &str, next: &str) -> Departed {
        let query = form_urlencoded::Serializer::new(String::new())
            .extend_pairs([("organization", organization), ("next", next)])
            .finish();
        let answer = self.get(&format!("/ui/sign-in/oidc?{query}"), "");
        assert_eq!(answer.status, 200, "{}{}", answer.head, answer.body);
        let (cookie, attributes) = answer.cookie().unwrap();
        assert_eq!(attributes, "Path=/ui/sign-in; Max-Age=600; HttpOnly; SameSite=Lax; Secure");
        let link =
            answer.body.split("<a href=\"").skip(1).find(|link| link.contains("code_challenge=")).unwrap();
        let link = link.split('"').next().unwrap().replace("&#38;", "&").replace("&amp;", "&");
        let refresh = answer.body.split("content=\"0; url=").nth(1).unwrap();
        assert!(refresh.starts_with(&format!("{}/auth?", self.issuer.url)), "{refresh}");
        let query = link.strip_prefix(&format!("{}/auth?", self.issuer.url)).expect(&link);
        let asked: BTreeMap<String, String> = form_urlencoded::parse(query.as_bytes()).into_owned().collect();
        assert_eq!(asked["redirect_uri"], format!("http://{}/ui/sign-in/callback", self.api.address));
        Departed { asked, cookie }
    }

    fn arrive(&self, departed: &Departed, query: &[(&str, &str)]) -> Answer {
        let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(query).finish();
        self.get(&format!("/ui/sign-in/callback?{query}"), &departed.cookie)
    }

    /// Comes back with a code for these claims.
    fn arrive_with(&self, departed: &Departed, claims: Value, signature: Signature) -> Answer {
        let code = self.issuer.code(&departed.asked, claims, signature);
        self.arrive(departed, &[("code", &code), ("state", &departed.asked["state"])])
    }

    /// Signs in from the beginning.
    fn sign_in(&self, organization: &str, subject: &str, email: &str) -> Answer {
        let departed = self.depart(organization, "/ui/clusters?status=Written");
        let claims = self.issuer.claims(&departed.asked, subject, email);
        self.arrive_with(&departed, claims, Signature::Own)
    }

    /// The browser is told the same whatever was wrong, and the log has the reason.
    #[track_caller]
    fn refuses(&self, answer: &Answer, reason: &str) {
        assert_eq!(answer.status, 401, "{reason}: {}{}", answer.head, answer.body);
        assert!(answer.body.contains(REFUSED), "{reason}: {}", answer.body);
        // The attempt ends, and nothing else.
        let cookies = answer.head.lines().filter_map(|line| line.strip_prefix("set-cookie: "));
        for (name, rest) in cookies.filter_map(|cookie| cookie.split_once('=')) {
            assert!(name.starts_with("__secure-streamfleet_sign_in_"), "{name}: {reason}");
            assert_eq!(rest, "; path=/ui/sign-in; max-age=0; httponly; samesite=lax; secure", "{reason}");
        }
        assert!(!answer.body.contains(reason), "{reason}");
        self.api.serve.says(&["WARN", &format!("sign-in by OpenID Connect refused: {reason}")]);
    }
}

fn header(answer: &Answer, name: &str) -> Option<String> {
    let mut lines = answer.head.lines().filter_map(|line| line.split_once(": "));
    lines.find(|(known, _)| *known == name).map(|(_, value)| value.to_owned())
}

/// The token of the session that an answer begins, as a cookie.
#[track_caller]
fn session(answer: &Answer) -> String {
    assert_eq!(answer.status, 303, "{}{}", answer.head, answer.body);
    let (cookie, _) = answer.cookie().unwrap();
    assert!(cookie.starts_with("__Host-streamfleet=sf_"), "{cookie}");
    cookie
}

#[test]
fn somebody_signs_in_to_the_page_they_came_for_and_signing_out_ends_the_session() {
    let tree = Tree::example("quickstart");
    let at = Installation::start(&tree, "");
    let form = at.get("/ui/sign-in?next=/ui/clusters", "");
    let host = at.issuer.url.split('/').nth(2).unwrap().to_owned();
    assert!(form.body.contains(&format!("<button>Continue with {host}</button>")), "{}", form.body);
    assert_eq!(header(&at.get("/ui/plan", ""), "location").as_deref(), Some("/ui/sign-in?next=%2fui%2fplan"));
    let answer = at.sign_in("acme", "1", MEMBER);
    assert_eq!(header(&answer, "location").as_deref(), Some("/ui/clusters?status=written"));
    let cookie = session(&answer);
    let you = at.get("/ui/you", &cookie);
    assert!(you.body.contains(MEMBER) && you.body.contains("organizations.yaml:"), "{}", you.body);
    let bearer = format!("Bearer {}", cookie.split_once('=').unwrap().1);
    let me = || send(&at.api.address, "GET /v1/me", &[("Authorization", &bearer)], "");
    let of_session: Value = serde_json::from_str(&me().body).unwrap();
    assert_eq!(
        json!([of_session["email"], of_session["organization"], of_session["access"], of_session["name"]]),
        json!([MEMBER, "acme", "admin", "web session"])
    );
    let hidden = you.body.split("name=\"csrf\" value=\"").nth(1).unwrap().split('"').next().unwrap();
    let headers = [
        ("Origin", &*format!("http://{}", at.api.address)),
        ("Cookie", &cookie),
        ("Content-Type", "application/x-www-form-urlencoded"),
    ];
    let out = send(&at.api.address, "POST /ui/sign-out", &headers, &format!("csrf={hidden}"));
    assert_eq!(header(&out, "location").as_deref(), Some("/ui/sign-in"));
    assert_eq!((me().status, at.get("/ui/you", &cookie).status), (401, 303));

    // For all organizations of a member, and for all there are as a super user.
    for (organization, subject, email, reach) in
        [("", "1", MEMBER, "*"), ("root", "2", ROOT, "*"), ("acme", "2", ROOT, "acme"), ("", "2", ROOT, "*")]
    {
        let cookie = session(&at.sign_in(organization, subject, email));
        let bearer = format!("Bearer {}", cookie.split_once('=').unwrap().1);
        let me = send(&at.api.address, "GET /v1/me", &[("Authorization", &bearer)], "");
        let me: Value = serde_json::from_str(&me.body).unwrap();
        assert_eq!((&me["email"], &me["organization"]), (&json!(email), &json!(reach)), "{organization}");
    }
    // Never to another site.
    let departed = at.depart("root", "https://evil.example.com/");
    let claims = at.issuer.claims(&departed.asked, "2", ROOT);
    let answer = at.arrive_with(&departed, claims, Signature::Own);
    assert_eq!(header(&answer, "location").as_deref(), Some("/ui/"));
    assert_eq!(at.issuer.state().fetched, 1, "the keys are kept");
    let log = at.api.serve.log();
    for secret in [SECRET, "code-", "streamfleet_sign_in", "sf_"] {
        assert!(!log.contains(secret), "{secret}");
    }
    assert_eq!(at.api.serve.stop(), Some(0));
}

#[test]
fn several_tabs_sign_in_at_a_time() {
    let tree = Tree::example("quickstart");
    let at = Installation::start(&tree, "");
    let tabs = ["/ui/clusters", "/ui/fleets", "/ui/plan"].map(|next| (next, at.depart("acme", next)));
    let cookies: Vec<&str> = tabs.iter().map(|(_, tab)| tab.cookie.as_str()).collect();
    let cookies = cookies.join("; ");
    for (next, tab) in tabs.iter().rev() {
        let claims = at.issuer.claims(&tab.asked, "1", MEMBER);
        let tab = Departed { asked: tab.asked.clone(), cookie: cookies.clone() };
        let answer = at.arrive_with(&tab, claims, Signature::Own);
        assert_eq!(header(&answer, "location").as_deref(), Some(*next));
        session(&answer);
    }
    // Attempts that are given up don't pile up.
    let many: Vec<String> = (0..20).map(|one| format!("__Secure-streamfleet_sign_in_{one}=x")).collect();
    let answer = at.get("/ui/sign-in/oidc", &many.join("; "));
    let ended = answer.head.matches("max-age=0").count();
    assert_eq!(
        (ended, answer.head.contains("__secure-streamfleet_sign_in_0=; ")),
        (13, true),
        "{}",
        answer.head
    );
    assert_eq!(at.api.serve.stop(), Some(0));
}

/// Asks for a new token, which can't be taken back; returns where that leads.
fn wants_a_token(at: &Installation<'_>, cookie: &str) -> String {
    let page = at.get("/ui/tokens", cookie).body;
    let hidden = page.split("name=\"csrf\" value=\"").nth(1).unwrap().split('"').next().unwrap();
    let origin = format!("http://{}", at.api.address);
    let headers = [
        ("Origin", origin.as_str()),
        ("Cookie", cookie),
        ("Referer", &format!("{origin}/ui/tokens")),
        ("Content-Type", "application/x-www-form-urlencoded"),
    ];
    let order = format!("csrf={hidden}&name=ci&organization=acme&access=read");
    let answer = send(&at.api.address, "POST /ui/tokens", &headers, &order);
    assert_eq!(answer.status, 303, "{}", answer.body);
    header(&answer, "location").unwrap()
}

#[test]
fn a_session_that_the_issuer_began_without_a_password_proves_nothing() {
    let tree = Tree::example("quickstart");
    let at = Installation::start(&tree, "");
    let again = "/ui/sign-in?again=1&next=%2fui%2ftokens";
    let now = jiff::Timestamp::now().as_second();
    for (auth_time, told, leads_to) in [
        (json!(now - 60), true, "/ui/tokens?created="),
        // The issuer knew the browser, or doesn't say.
        (json!(now - 20 * 60), true, again),
        (json!(-1), true, again),
        (json!(-1e300), false, again),
        (Value::Null, false, again),
    ] {
        let departed = at.depart("root", "");
        let mut claims = at.issuer.claims(&departed.asked, "1", ROOT);
        claims["auth_time"] = auth_time.clone();
        let cookie = session(&at.arrive_with(&departed, claims, Signature::Own));
        let place = wants_a_token(&at, &cookie);
        assert!(place.starts_with(leads_to), "{auth_time}: {place}");
        let bearer = format!("Bearer {}", cookie.split_once('=').unwrap().1);
        let me = send(&at.api.address, "GET /v1/me", &[("Authorization", &bearer)], "");
        let me: Value = serde_json::from_str(&me.body).unwrap();
        assert_eq!(me["sign_in"]["with"], at.issuer.url.as_str());
        assert_eq!(me["sign_in"]["proved_at"].is_string(), told, "{auth_time}: {me}");
        // A session that this one begins has no better proof.
        let json = [("Authorization", bearer.as_str()), ("Content-Type", "application/json")];
        let made = send(&at.api.address, "POST /v1/sessions", &json, "{}");
        let made: Value = serde_json::from_str(&made.body).unwrap();
        assert_eq!(made["sign_in"], me["sign_in"]);
        let you = at.get("/ui/you", &cookie).body;
        assert!(you.contains(&at.issuer.url), "{you}");
    }
    assert_eq!(at.api.serve.stop(), Some(0));
}

#[test]
fn whoever_signs_in_again_proves_who_they_are() {
    let tree = Tree::example("quickstart");
    let at = Installation::start(&tree, "");
    let depart = |again: &str| {
        let page = at.get(&format!("/ui/sign-in/oidc?organization=root{again}"), "");
        let link =
            page.body.split("<a href=\"").skip(1).find(|link| link.contains("code_challenge=")).unwrap();
        let query = link.split('"').next().unwrap().split_once('?').unwrap().1.replace("&#38;", "&");
        let asked: BTreeMap<String, String> = form_urlencoded::parse(query.as_bytes()).into_owned().collect();
        Departed { asked, cookie: page.cookie().unwrap().0 }
    };
    assert!(!depart("").asked.contains_key("max_age") && !depart("").asked.contains_key("prompt"));
    let now = jiff::Timestamp::now().as_second();
    let unproved = "doesn&#39;t say that you entered your password a moment ago";
    for (auth_time, told) in [
        (json!(now - 60), None),
        (json!(now - 3600), Some(unproved)),
        (Value::Null, Some(unproved)),
        (json!(now + 3600), Some(REFUSED)),
    ] {
        let departed = depart("&again=1");
        assert_eq!((&*departed.asked["max_age"], &*departed.asked["prompt"]), ("900", "login"));
        let mut claims = at.issuer.claims(&departed.asked, "1", ROOT);
        claims["auth_time"] = auth_time;
        let answer = at.arrive_with(&departed, claims, Signature::Own);
        match told {
            None => assert!(wants_a_token(&at, &session(&answer)).starts_with("/ui/tokens?created=")),
            Some(told) => assert!(answer.status == 401 && answer.body.contains(told), "{}", answer.body),
        }
    }
    at.api.serve.says(&["it doesn't say that the person signed in to the issuer a moment ago"]);
    assert_eq!(at.api.serve.stop(), Some(0));
}

#[test]
fn a_token_that_lies_signs_nobody_in() {
    let tree = Tree::example("quickstart");
    let at = Installation::start(&tree, "");
    let now = jiff::Timestamp::now().as_second();
    let cases = [
        (json!({"iss": "https://evil.example.com"}), "its issuer is https://evil.example.com"),
        (json!({"aud": "another"}), "it is for another client"),
        (json!({"aud": [CLIENT, "another"]}), "it is for another client"),
        (json!({"aud": [CLIENT, "another"], "azp": "another"}), "it is for another client"),
        (json!({"aud": "another", "azp": CLIENT}), "it is for another client"),
        (json!({"nonce": "another"}), "its nonce is not that of this sign-in"),
        (json!({"nonce": null}), "its nonce is not that of this sign-in"),
        (json!({"exp": now - 60}), "it has expired"),
        (json!({"nbf": now + 600}), "it is not valid yet"),
        (json!({"iat": now + 600}), "it is not valid yet"),
        (
            json!({"auth_time": now + 600}),
            "it says that the person signs in to the issuer in the future (`auth_time`)",
        ),
        (
            json!({"exp": "tomorrow"}),
            "its claims are invalid: invalid type: string \"tomorrow\", expected f64",
        ),
        (json!({"sub": ""}), "its subject is empty or too long"),
        (json!({"email": null}), "it has no e-mail address in the claim `email`"),
        (json!({"email": "ada"}), "it has no e-mail address in the claim `email`"),
        (
            json!({"email_verified": false}),
            "the identity provider doesn't call the address platform@acme.example.com verified",
        ),
        (
            json!({"email_verified": null}),
            "the identity provider doesn't call the address platform@acme.example.com verified",
        ),
        (
            json!({"email_verified": "false"}),
            "the identity provider doesn't call the address platform@acme.example.com verified",
        ),
    ];
    for (lies, reason) in cases {
        let departed = at.depart("acme", "");
        let mut claims = at.issuer.claims(&departed.asked, "1", MEMBER);
        lies.as_object().unwrap().iter().for_each(|(name, lie)| claims[name] = lie.clone());
        let answer = at.arrive_with(&departed, claims, Signature::Own);
        at.refuses(&answer, &format!("the ID token is refused: {reason}"));
    }
    for (signature, reason) in [
        (Signature::None, "its header is invalid: JSON error: unknown variant `none`"),
        (Signature::Shared, "it is signed with HS256, which is not allowed"),
        (Signature::Foreign, "its signature is not one of the issuer"),
        (Signature::Tampered, "its signature is not one of the issuer"),
        (Signature::Second, "the issuer publishes no key `second`"),
    ] {
        let departed = at.depart("acme", "");
        let claims = at.issuer.claims(&departed.asked, "1", MEMBER);
        let answer = at.arrive_with(&departed, claims, signature);
        at.refuses(&answer, &format!("the ID token is refused: {reason}"));
    }
    assert_eq!(at.api.get("/v1/sessions").expect(200).body["total"], 0);
    // None of the lies bound the address.
    session(&at.sign_in("acme", "another", MEMBER));
    assert_eq!(at.api.serve.stop(), Some(0));
}

#[test]
fn only_the_browser_that_left_comes_back_and_only_once() {
    let tree = Tree::example("quickstart");
    let at = Installation::start(&tree, "");
    let honest = |departed: &Departed| {
        let claims = at.issuer.claims(&departed.asked, "1", MEMBER);
        at.issuer.code(&departed.asked, claims, Signature::Own)
    };
    let departed = at.depart("acme", "");
    let code = honest(&departed);
    let state = departed.asked["state"].clone();
    let none = "this browser began no sign-in within the last 10 minutes";
    let other = "its `state` is not that of the sign-in that this browser began";
    for cookie in
        ["", "__Secure-streamfleet_sign_in=", "__Secure-streamfleet_sign_in=e30.AAAA", "__Host-streamfleet=x"]
    {
        let lost = Departed { asked: departed.asked.clone(), cookie: cookie.to_owned() };
        at.refuses(&at.arrive(&lost, &[("code", &code), ("state", &state)]), none);
    }
    let another = at.depart("acme", "");
    at.refuses(&at.arrive(&another, &[("code", &code), ("state", &state)]), other);
    at.refuses(&at.arrive(&departed, &[("code", &code)]), other);
    at.refuses(&at.arrive(&departed, &[("code", &code), ("state", "")]), other);
    let whole = [("code", code.as_str()), ("state", state.as_str()), ("iss", at.issuer.url.as_str())];
    session(&at.arrive(&departed, &whole));
    at.refuses(&at.arrive(&departed, &whole), "this sign-in came back before");
    // The issuer knows a code once. One of somebody else fits neither verifier nor nonce.
    let departed = at.depart("acme", "");
    let answer = at.arrive(&departed, &[("code", &code), ("state", &departed.asked["state"])]);
    at.refuses(&answer, "the issuer refuses the code: 400 Bad Request invalid_grant unknown code");
    let (victim, thief) = (at.depart("acme", ""), at.depart("acme", ""));
    let code = honest(&victim);
    let answer = at.arrive(&thief, &[("code", &code), ("state", &thief.asked["state"])]);
    at.refuses(
        &answer,
        "the issuer refuses the code: 400 Bad Request invalid_grant wrong verifier or redirect URI",
    );
    let departed = at.depart("acme", "");
    let answer = at.arrive(&departed, &[("state", &departed.asked["state"])]);
    at.refuses(&answer, "the answer of the issuer has no code");
    let departed = at.depart("acme", "");
    let code = honest(&departed);
    let answer = at.arrive(
        &departed,
        &[("code", &code), ("state", &departed.asked["state"]), ("iss", "https://evil.example.com")],
    );
    at.refuses(&answer, "the answer is one of the issuer https://evil.example.com");
    // What the issuer says is not repeated.
    let text = "<script>alert(1)</script>";
    for (error, told) in [("access_denied", "you ended the sign-in at 127.0.0.1"), ("server_error", REFUSED)]
    {
        let departed = at.depart("acme", "");
        let state = departed.asked["state"].as_str();
        let answer = at.arrive(&departed, &[("error", error), ("error_description", text), ("state", state)]);
        assert!(answer.status == 401 && answer.body.contains(told), "{}", answer.body);
        assert!(!answer.body.contains("alert(1)"), "{}", answer.body);
        at.api.serve.says(&[&format!("refused: the issuer answers {error}: {text}")]);
    }
    assert_eq!(at.api.serve.stop(), Some(0));
}

#[test]
fn who_may_not_sign_in_does_not_learn_why() {
    let tree = Tree::example("quickstart");
    let at = Installation::start(&tree, "");
    let stranger = "stranger@evil.example.com";
    let mut told = Vec::new();
    for (organization, email, place) in [
        ("acme", stranger, "organization `acme`"),
        ("acne", stranger, "organization `acne`"),
        ("", stranger, "any organization"),
        ("root", stranger, "organization `root`"),
        ("root", MEMBER, "organization `root`"),
        ("acne", MEMBER, "organization `acne`"),
        ("acne", ROOT, "organization `acne`"),
    ] {
        let answer = at.sign_in(organization, email, email);
        at.refuses(&answer, &format!("{email} is not a member of {place}, or there is none"));
        assert!(
            answer.body.contains("name=\"next\" value=\"/ui/clusters?status=Written\""),
            "{}",
            answer.body
        );
        told.push(answer.body);
    }
    let answer = at.sign_in("Nö", MEMBER, MEMBER);
    at.refuses(&answer, &format!("{MEMBER} names organization `Nö`, which can't exist"));
    told.push(answer.body);
    told.dedup();
    assert_eq!(told.len(), 1);
    assert_eq!(at.api.serve.stop(), Some(0));
}

#[test]
fn another_account_with_the_same_address_is_refused_until_the_host_says_otherwise() {
    let tree = Tree::example("quickstart");
    let at = Installation::start(&tree, "");
    session(&at.sign_in("acme", "1", MEMBER));
    session(&at.sign_in("acme", "1", MEMBER));
    let bound = format!("{MEMBER} is bound to another account of this issuer");
    at.refuses(&at.sign_in("acme", "2", MEMBER), &bound);
    at.refuses(
        &at.sign_in("acme", "2", "Platform@acme.example.com"),
        "Platform@acme.example.com is bound to another",
    );
    // A member whose account has another address now.
    at.refuses(
        &at.sign_in("root", "1", ROOT),
        &format!("the account is bound to {MEMBER}, and not to {ROOT}"),
    );
    let events = at.api.get("/v1/events?page_size=200").expect(200).body;
    let refused: Vec<&Value> = events["items"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|event| event["what"] == format!("refused to sign in {MEMBER}"))
        .collect();
    assert_eq!(refused.len(), 1, "{events:#}");
    assert_eq!(refused[0]["actor"], format!("account 2 of {}", at.issuer.url));
    assert!(refused[0]["why"].as_str().unwrap().starts_with(&bound), "{events:#}");
    let forget =
        |email: &str| tree.run(&format!("sign-in {email} tree --config settings.toml --forget-account"));
    let run = forget(MEMBER).expect(0);
    assert_eq!(run.out, format!("{MEMBER} is bound to no account; the next one that signs in with it is\n"));
    forget("nobody@example.com")
        .expect(1)
        .says(&["error: no account is bound to the e-mail address `nobody@example.com`"]);
    session(&at.sign_in("acme", "2", MEMBER));
    at.refuses(&at.sign_in("acme", "1", MEMBER), &bound);
    assert_eq!(at.api.serve.stop(), Some(0));
}

#[test]
fn new_keys_are_found_once_and_bad_answers_are_limited() {
    let tree = Tree::example("quickstart");
    let at = Installation::start(&tree, "trust_unverified_emails = true\n");
    let sign_in = |signature: Signature| {
        let departed = at.depart("acme", "");
        let mut claims = at.issuer.claims(&departed.asked, "1", MEMBER);
        // The settings say that this doesn't matter.
        claims["email_verified"] = false.into();
        at.arrive_with(&departed, claims, signature)
    };
    let fetched = || at.issuer.state().fetched;
    session(&sign_in(Signature::Own));
    assert_eq!(fetched(), 1);
    at.issuer.state().publishes_all = true;
    session(&sign_in(Signature::Second));
    assert_eq!(fetched(), 2);
    session(&sign_in(Signature::Curve));
    session(&sign_in(Signature::Own));
    at.issuer.state().publishes_all = false;
    session(&sign_in(Signature::Second));
    assert_eq!(fetched(), 2, "the keys are kept");
    for (answer, reason) in [
        (TokenAnswer::Huge, "/token: the answer is larger than 256 KiB"),
        (TokenAnswer::NoToken, "the answer to the exchange of the code has no ID token"),
        (TokenAnswer::Silent, "/token: no whole answer within 10 s"),
    ] {
        at.issuer.state().answer = answer;
        let answer = sign_in(Signature::Own);
        assert!(answer.status == 401 && answer.body.contains(REFUSED), "{}", answer.body);
        at.api.serve.says(&["sign-in by OpenID Connect refused", reason]);
    }
    // Even where the issuer takes a code twice.
    at.issuer.state().answer = TokenAnswer::Repeated;
    let departed = at.depart("acme", "");
    let code =
        at.issuer.code(&departed.asked, at.issuer.claims(&departed.asked, "1", MEMBER), Signature::Own);
    let query = [("code", code.as_str()), ("state", departed.asked["state"].as_str())];
    session(&at.arrive(&departed, &query));
    at.refuses(&at.arrive(&departed, &query), "this sign-in came back before");
    assert_eq!(at.api.serve.stop(), Some(0));
}

#[test]
fn an_issuer_that_is_away_or_another_one_is_not_gone_to() {
    let tree = Tree::example("quickstart");
    let at = Installation::start(&tree, "auto_redirect = true\n");
    // A page leads on at once, and who signed out finds the form.
    let ask = at.get("/ui/plan", "");
    assert_eq!(header(&ask, "location").as_deref(), Some("/ui/sign-in/oidc?next=%2fui%2fplan"));
    assert!(at.get("/ui/sign-in", "").body.contains("Continue with"));
    let leave = |reason: &str, told: &str| {
        let answer = at.get("/ui/sign-in/oidc?organization=acme&next=/ui/plan", "");
        assert_eq!(answer.status, 401, "{}", answer.body);
        assert!(answer.body.contains(told) && !answer.body.contains(reason), "{}", answer.body);
        assert!(
            answer.body.contains("value=\"acme\"") && answer.body.contains("value=\"/ui/plan\""),
            "{}",
            answer.body
        );
        at.api.serve.says(&["sign-in by OpenID Connect refused", reason]);
    };
    at.issuer.state().calls_itself = Some("https://login.microsoftonline.com/{tenantid}/v2.0".to_owned());
    leave(
        "the issuer calls itself https://login.microsoftonline.com/{tenantid}/v2.0, and `api.oidc.issuer` is",
        REFUSED,
    );
    at.issuer.state().calls_itself = None;
    at.issuer.state().keys_elsewhere = Some("http://keys.example.com/".to_owned());
    leave("the issuer's metadata has the address http://keys.example.com/, which is no https://", REFUSED);
    at.issuer.state().keys_elsewhere = Some(format!("{}/none", at.issuer.url));
    leave("cannot read the issuer's keys at", "can&#39;t be reached");
    at.issuer.state().keys_elsewhere = None;
    at.depart("acme", "");
    assert_eq!(at.api.serve.stop(), Some(0));
}

#[test]
fn a_secret_that_cannot_be_read_is_an_error_at_the_start() {
    let tree = Tree::example("quickstart");
    let settings = "state_dir = \"state\"\n[api]\nlisten = \"127.0.0.1:0\"\n[api.oidc]\nissuer = \
                    \"https://login.example.com\"\nclient_id = \"a\"\nclient_secret_file = \"none\"\n";
    fs::write(tree.beside("settings.toml"), settings).unwrap();
    let file = tree.beside("none");
    tree.run(SERVE).expect(1).says(&[
        &format!(
            "cannot offer sign-in by OpenID Connect: cannot use `api.oidc.client_secret_file`, `{}`: No such file or \
             directory",
            file.display()
        ),
        "correct `api.oidc` in the config file; the user of the daemon needs to be able to read the file of the secret",
    ]);
    tree.run("config check settings.toml").expect(0).says(&[&format!(
        "`api.oidc.client_secret_file` is `{}`, and there is no such file",
        file.display()
    )]);
}
