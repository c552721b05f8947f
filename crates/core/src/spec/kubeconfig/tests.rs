use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{CertificateParams, KeyPair};

use super::*;

const TOKEN: &str = "hunter2-token";

fn config(cluster: &str, user: &str) -> String {
    let indented = |lines: &str| lines.lines().map(|line| format!("    {line}\n")).collect::<String>();
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: prod\npreferences: {{}}\n\
         contexts:\n- name: other\n  context: {{cluster: none, user: none}}\n\
         - name: prod\n  context:\n    cluster: c\n    user: u\n    namespace: team\n\
         clusters:\n- name: c\n  cluster:\n{}- name: insecure\n  cluster: {{server: http://x, proxy-url: x}}\n\
         users:\n- name: u\n  user:\n{}- name: runner\n  user: {{exec: {{command: /bin/sh}}}}\n",
        indented(cluster),
        indented(user),
    )
}

const SERVER: &str = "server: https://k.example.com:6443";

fn pair() -> (String, String) {
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(vec!["client".into()]).unwrap().self_signed(&key).unwrap();
    (certificate.pem(), key.serialize_pem())
}

/// Returns `code: message (hint)`, one line a fault, after checking that it contains no secret.
fn faults(text: &str) -> String {
    let faults = KubeAccess::parse(text).expect_err("the kubeconfig is at fault");
    let told: Vec<_> =
        faults.iter().map(|fault| format!("{}: {} ({})", fault.code, fault.message, fault.hint)).collect();
    let told = told.join("\n");
    assert!(!told.contains("hunter2"), "{told}");
    assert!(faults.iter().all(|fault| fault.part == Part::Kubeconfig), "{told}");
    told
}

#[test]
fn only_what_is_needed_to_connect_is_copied_from_the_current_context() {
    let (authority, _) = pair();
    let cluster = format!(
        "{SERVER}\ncertificate-authority-data: {}\ntls-server-name: api\ninsecure-skip-tls-verify: false",
        STANDARD.encode(&authority)
    );
    let access = KubeAccess::parse(&config(&cluster, &format!("token: {TOKEN}\nexec: null"))).unwrap();
    assert_eq!(access.server, "https://k.example.com:6443");
    assert_eq!(access.host, "k.example.com");
    assert_eq!(access.tls_server_name.as_deref(), Some("api"));
    assert_eq!(access.certificate_authority.as_deref(), Some(&*authority));
    assert_eq!(access.namespace.as_deref(), Some("team"));
    assert_eq!(access.denied_address(), None);
    let KubeAuth::Token(token) = &access.auth else { panic!("a token was given") };
    assert_eq!(token.expose_secret(), TOKEN);
    assert!(!format!("{access:?}").contains("hunter2"));
}

#[test]
fn a_client_certificate_is_taken_with_its_key() {
    let (certificate, key) = pair();
    let (_, other) = pair();
    let user = |key: &str| {
        let (certificate, key) = (STANDARD.encode(&certificate), STANDARD.encode(key));
        format!("client-certificate-data: {certificate}\nclient-key-data: {key}")
    };
    let access = KubeAccess::parse(&config(SERVER, &user(&key))).unwrap();
    let debug = format!("{access:?}");
    let KubeAuth::ClientCertificate { certificate: copied, key: held } = access.auth else {
        panic!("a client certificate was given")
    };
    assert_eq!(copied, certificate);
    assert!(PrivateKey::parse(held.expose_secret()).is_ok());
    assert!(!debug.contains("PRIVATE KEY"), "{debug}");
    assert_eq!(
        faults(&config(SERVER, &user(&other))),
        "key-does-not-fit: the kubeconfig's `client-key-data` can't be used: the private key does not belong to the \
         certificate (use the key that the certificate was requested with, and change both fields together)"
    );
}

#[test]
fn whatever_runs_reads_or_leads_elsewhere_is_refused_by_name() {
    let program = format!("which {NO_PROGRAMS} ({STATIC_LOGIN})");
    let impersonation = format!("which {NO_IMPERSONATION} ({OWN_LOGIN})");
    let old = format!("which is a login that Kubernetes removed in version 1.19 ({STATIC_LOGIN})");
    let flatten = "`kubectl config view --flatten --raw`";
    let users = [
        ("exec: {command: hunter2}", "exec", program.clone()),
        ("auth-provider: {name: gcp}", "auth-provider", program),
        ("tokenFile: /hunter2", "tokenFile", format!("which {NO_FILES} (put the token itself in `token`)")),
        (
            "client-certificate: /hunter2",
            "client-certificate",
            format!("which {NO_FILES} (put the file's content in `client-certificate-data`: {flatten})"),
        ),
        (
            "client-key: /hunter2",
            "client-key",
            format!("which {NO_FILES} (put the file's content in `client-key-data`: {flatten})"),
        ),
        ("username: hunter2", "username", old.clone()),
        ("password: hunter2", "password", old),
        ("as: hunter2", "as", impersonation.clone()),
        ("as-uid: hunter2", "as-uid", impersonation.clone()),
        ("as-groups: [hunter2]", "as-groups", impersonation.clone()),
        ("as-user-extra: {a: [hunter2]}", "as-user-extra", impersonation),
    ];
    for (line, field, rest) in users {
        let told = faults(&config(SERVER, &format!("token: {TOKEN}\n{line}")));
        assert_eq!(told, format!("kubeconfig-refused-field: the kubeconfig's user has `{field}`, {rest}"));
    }
    let clusters = [
        (
            "certificate-authority: /hunter2",
            "certificate-authority",
            format!(
                "which {NO_FILES} (put the file's content in `certificate-authority-data`: {flatten})"
            ),
        ),
        (
            "proxy-url: http://hunter2",
            "proxy-url",
            "which sends the connection through a proxy of the kubeconfig's choice (make the API server reachable without \
             a proxy and remove it)"
                .to_owned(),
        ),
        (
            "insecure-skip-tls-verify: true",
            "insecure-skip-tls-verify",
            "which would accept any certificate, and send the credentials to any server (remove it, and put the \
             authority's certificate in `certificate-authority-data`)"
                .to_owned(),
        ),
    ];
    for (line, field, rest) in clusters {
        let told = faults(&config(&format!("{SERVER}\n{line}"), &format!("token: {TOKEN}")));
        assert_eq!(told, format!("kubeconfig-refused-field: the kubeconfig's cluster has `{field}`, {rest}"));
    }
}

#[test]
fn each_other_mistake_is_told_with_the_way_out() {
    let token = format!("token: {TOKEN}");
    let good = config(SERVER, &token);
    let with_server = |server: &str| config(&format!("server: {server}"), &token);
    let url = "(set it to the address of the API server, `https://HOST:PORT`)";
    let cases = [
        (
            good.replace("current-context: prod\n", ""),
            "kubeconfig-no-context: the kubeconfig has no `current-context`, so its cluster is ambiguous (set it with \
             `kubectl config use-context CONTEXT`)".to_owned(),
        ),
        (
            good.replace("current-context: prod", "current-context: hunter2"),
            "kubeconfig-entry-missing: the kubeconfig has no context with the name that `current-context` gives (add it to \
             `contexts`, or use an existing name)".to_owned(),
        ),
        (
            good.replace("    cluster: c\n", ""),
            "kubeconfig-context-incomplete: the kubeconfig's current context has no cluster (set one of the kubeconfig's \
             clusters in the context's `cluster`)".to_owned(),
        ),
        (
            good.replace("    user: u\n", "    user: v\n"),
            "kubeconfig-entry-missing: the kubeconfig has no user with the name that the current context gives (add it to \
             `users`, or use an existing name)".to_owned(),
        ),
        (
            good.replace("name: runner", "name: u"),
            "kubeconfig-entry-twice: the kubeconfig has two users with the name that the current context gives (remove or \
             rename one of them)".to_owned(),
        ),
        (
            config(SERVER, "").replace("  user:\n- ", "  user: null\n- "),
            "kubeconfig-entry-empty: the user that the current context names is empty (write its fields under `user`)".to_owned(),
        ),
        (
            config(SERVER, "token: \"\""),
            format!("kubeconfig-no-login: the kubeconfig's user has neither a token nor a client certificate ({STATIC_LOGIN})"),
        ),
        (
            config(SERVER, "token: \"hunter2\\nhunter2\""),
            "kubeconfig-token-damaged: the kubeconfig's `token` contains line breaks, spaces or other invalid characters \
             (put the token on one line; decode a token from a Secret with `base64 -d` first)".to_owned(),
        ),
        (
            config(SERVER, "token: 123456"),
            "kubeconfig-not-text: the kubeconfig's user has a `token` that is not a string (put it in quotes)".to_owned(),
        ),
        (
            config(SERVER, &format!("{token}\nhunter2: x")),
            "kubeconfig-unknown-field: the kubeconfig's user has an unknown field (keep only the supported fields: \
             `token`, `client-certificate-data`, `client-key-data`)".to_owned(),
        ),
        (
            config(SERVER, "client-key-data: aHVudGVyMg=="),
            "kubeconfig-half-login: the kubeconfig's user has only half of a client certificate (set both \
             `client-certificate-data` and `client-key-data`)".to_owned(),
        ),
        (
            config(SERVER, &format!("{token}\nclient-key-data: aHVudGVyMg==")),
            "kubeconfig-two-logins: the kubeconfig's user has both a token and a client certificate, which may belong to \
             two users (keep one of them)".to_owned(),
        ),
        (
            config(SERVER, "client-key-data: hunter2*"),
            "kubeconfig-base64: the kubeconfig's `client-key-data` is not a PEM text in base64 (copy the whole value \
             again, or make it with `base64 -w0 FILE`)".to_owned(),
        ),
        (
            config(&format!("{SERVER}\ncertificate-authority-data: aHVudGVyMg=="), &token),
            "certificate-not-pem: the kubeconfig's `certificate-authority-data` can't be used: the certificate is not PEM: \
             it has no `-----BEGIN CERTIFICATE-----` line (convert it with `openssl x509 -inform DER -in CERT`; in YAML, \
             put `|` before a text of several lines)".to_owned(),
        ),
        (
            config("tls-server-name: api", &token),
            format!("kubeconfig-no-server: the kubeconfig's cluster has no `server` {url}"),
        ),
        (
            with_server("http://hunter2.example.com"),
            format!("kubeconfig-server-not-https: the kubeconfig's `server` is not an https URL {url}"),
        ),
        (
            with_server("https://me:hunter2@k.example.com"),
            "kubeconfig-server-user-info: the kubeconfig's `server` has a user name or password in its URL (remove \
             everything up to the `@`, and set a token or a client certificate under `users`)".to_owned(),
        ),
        (
            with_server("https://:6443"),
            format!("kubeconfig-server-invalid: the kubeconfig's `server` is not a URL with a host name or IP address, a \
                     port and a path {url}"),
        ),
        (
            "users: [hunter2".to_owned(),
            "kubeconfig-not-yaml: the kubeconfig can't be read at its line 1, column 8 (use the output of `kubectl config \
             view --minify --flatten --raw`)".to_owned(),
        ),
        (
            "x".repeat(KubeAccess::MAX_LENGTH + 1),
            "kubeconfig-too-large: the kubeconfig is larger than 1 MiB (keep only the needed context: `kubectl config view \
             --minify --flatten --raw`)".to_owned(),
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(faults(&text), expected);
    }
}

#[test]
fn all_mistakes_are_told_at_once() {
    let told = faults(&config("server: http://x\nproxy-url: x", "exec: {command: x}\ntokenFile: x"));
    assert_eq!(told.lines().count(), 4, "{told}");
}

#[test]
fn a_server_on_our_own_host_is_told_apart_for_the_settings_to_judge() {
    let denied = |server: &str| {
        let text = config(&format!("server: {server}"), &format!("token: {TOKEN}"));
        KubeAccess::parse(&text).unwrap().denied_address()
    };
    let cases = [
        ("https://127.0.0.1:6443", "`127.0.0.1` is a loopback address of the host that Streamfleet runs on"),
        (
            "https://169.254.169.254",
            "`169.254.169.254` is a link-local address, which clouds use for their metadata services",
        ),
        ("https://LOCALHOST", "`localhost` is a name of the host that Streamfleet runs on"),
        ("https://[ff02::1]", "`ff02::1` is a multicast address"),
        ("https://[::]", "`::` is an unspecified address, which means the host that Streamfleet runs on"),
        ("https://100.100.100.200", "`100.100.100.200` is the address of a cloud's metadata service"),
        ("https://255.255.255.255", "`255.255.255.255` is the broadcast address"),
    ];
    for (server, expected) in cases {
        assert_eq!(denied(server).as_deref(), Some(expected));
    }
    assert_eq!(denied("https://10.0.0.1:6443"), None);
}

#[test]
fn a_bomb_is_refused_before_it_goes_off() {
    let levels: String = (1..30).map(|n| format!("l{n}: &l{n} [*l{0}, *l{0}]\n", n - 1)).collect();
    let told = faults(&format!("l0: &l0 [x]\n{levels}{}", config(SERVER, &format!("token: {TOKEN}"))));
    assert!(told.starts_with("kubeconfig-not-yaml: "), "{told}");
}
