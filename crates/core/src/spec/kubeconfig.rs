//! Kubeconfigs, which come from tenants: only the fields needed to connect are copied. Fields that would run
//! a program, read a local file or use another route are refused by name.

mod entries;
mod server;

#[cfg(test)]
mod tests;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use camino::Utf8PathBuf;
use jiff::Timestamp;
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use zeroize::Zeroizing;

use super::certificate::{key_mismatch, read_chain, read_ders};
use super::material::{MaterialFault, Part};
use super::private_key::PrivateKey;
use entries::{Field, Fields, File, NamedEntry};
use server::Server;

pub use server::denied_range;

/// The server and the credentials of a Kubernetes cluster: everything that is ever used of a kubeconfig, or of a
/// pod's service account.
#[derive(Debug, Clone)]
pub struct KubeAccess {
    pub server: String,
    /// The host in that URL, lower case, without brackets and port.
    pub host: String,
    /// The name that the server's certificate has to be for. By default the host.
    pub tls_server_name: Option<String>,
    /// The CA certificates in PEM to verify the server with. By default the system's.
    pub certificate_authority: Option<String>,
    pub auth: KubeAuth,
    /// The default namespace of the context.
    pub namespace: Option<String>,
}

#[derive(Debug, Clone)]
pub enum KubeAuth {
    Token(SecretString),
    ClientCertificate {
        certificate: String,
        /// Its private key, PKCS#8 in PEM.
        key: SecretString,
    },
    /// The file of a token that another program renews: that of a pod's service account. No kubeconfig has it.
    TokenFile(Utf8PathBuf),
}

impl KubeAccess {
    /// The longest kubeconfig, in bytes. A large one with several contexts has some 100 KiB.
    pub const MAX_LENGTH: usize = 1024 * 1024;

    /// Copies the current context out of a kubeconfig. Other contexts are not checked.
    ///
    /// # Errors
    /// All mistakes and refused fields; none of their values is quoted.
    pub fn parse(text: &str) -> Result<KubeAccess, Vec<MaterialFault>> {
        let file = read_file(text).map_err(|fault| vec![fault])?;
        let context = SelectedEntry::context(&file).map_err(|fault| vec![fault])?;
        let mut faults = context.refused(CONTEXT_FIELDS);
        let cluster = keep(SelectedEntry::of(&file.clusters, &context, "cluster"), &mut faults);
        let user = keep(SelectedEntry::of(&file.users, &context, "user"), &mut faults);
        faults.extend(cluster.iter().flat_map(|cluster| cluster.refused(CLUSTER_FIELDS)));
        faults.extend(user.iter().flat_map(|user| user.refused(USER_FIELDS)));

        let server = cluster.as_ref().and_then(|cluster| keep(read_server(cluster), &mut faults));
        let authority = cluster.as_ref().and_then(|cluster| keep(read_authority(cluster), &mut faults));
        // A refused login field is reported already, so a missing login isn't reported as well.
        let auth = user
            .filter(|user| user.refused(USER_FIELDS).is_empty())
            .and_then(|user| keep(read_auth(&user), &mut faults));
        match (server, authority, auth, cluster) {
            (Some(Server { url, host }), Some(certificate_authority), Some(auth), Some(cluster))
                if faults.is_empty() =>
            {
                Ok(KubeAccess {
                    server: url,
                    host,
                    tls_server_name: cluster.text("tls-server-name").map(str::to_owned),
                    certificate_authority,
                    auth,
                    namespace: context.text("namespace").map(str::to_owned),
                })
            }
            _ => Err(faults),
        }
    }

    /// Returns why the server must not be connected to unless the installation allows it, as a clause such as
    /// "`127.0.0.1` is a loopback address". For a host name, each address that it resolves to has to be
    /// checked again with [`denied_range`].
    pub fn denied_address(&self) -> Option<String> {
        server::denied_host(&self.host)
    }
}

impl KubeAuth {
    /// When it stops being accepted, as far as it says so itself. Nothing is verified.
    pub fn expires(&self) -> Option<Timestamp> {
        match self {
            KubeAuth::Token(token) => {
                let payload = token.expose_secret().split('.').nth(1)?;
                let payload = Zeroizing::new(URL_SAFE_NO_PAD.decode(payload.trim_end_matches('=')).ok()?);
                let claims: Claims = serde_json::from_slice(&payload).ok()?;
                Timestamp::from_second(claims.exp).ok()
            }
            KubeAuth::ClientCertificate { certificate, .. } => {
                let ders = read_ders(certificate).ok()?;
                let end = read_chain(&ders).ok()?.first()?.validity().not_after.timestamp();
                Timestamp::from_second(end).ok()
            }
            KubeAuth::TokenFile(_) => None,
        }
    }
}

/// The part of a JSON Web Token that is read.
#[derive(Deserialize)]
struct Claims {
    exp: i64,
}

enum Use {
    /// The field is copied, or has no effect.
    Accepted,
    /// The field is refused: the reason, as the end of a sentence, and the remedy.
    Refused(&'static str, &'static str),
}

const STATIC_LOGIN: &str = "use a static token of a service account, under `token`, or a client certificate, under \
     `client-certificate-data` and `client-key-data`";
const NO_FILES: &str = "names a file on the host of Streamfleet";
const NO_PROGRAMS: &str = "runs a program on the host of Streamfleet";
const NO_IMPERSONATION: &str = "impersonates another user, whose permissions can't be checked";
const OWN_LOGIN: &str = "remove it, and use the credentials of that user";

const CONTEXT_FIELDS: &[(&str, Use)] = &[
    ("cluster", Use::Accepted),
    ("user", Use::Accepted),
    ("namespace", Use::Accepted),
    // Notes of other programs.
    ("extensions", Use::Accepted),
];

const CLUSTER_FIELDS: &[(&str, Use)] = &[
    ("server", Use::Accepted),
    ("certificate-authority-data", Use::Accepted),
    ("tls-server-name", Use::Accepted),
    // Compression is never requested, so it is always off.
    ("disable-compression", Use::Accepted),
    ("extensions", Use::Accepted),
    (
        "certificate-authority",
        Use::Refused(
            NO_FILES,
            "put the file's content in `certificate-authority-data`: `kubectl config view --flatten --raw`",
        ),
    ),
    (
        "proxy-url",
        Use::Refused(
            "sends the connection through a proxy of the kubeconfig's choice",
            "make the API server reachable without a proxy and remove it",
        ),
    ),
    (
        "insecure-skip-tls-verify",
        Use::Refused(
            "would accept any certificate, and send the credentials to any server",
            "remove it, and put the authority's certificate in `certificate-authority-data`",
        ),
    ),
];

/// The known fields of a user. All others are refused too, since they may be unknown ways to log in.
const USER_FIELDS: &[(&str, Use)] = &[
    ("token", Use::Accepted),
    ("client-certificate-data", Use::Accepted),
    ("client-key-data", Use::Accepted),
    ("extensions", Use::Accepted),
    ("exec", Use::Refused(NO_PROGRAMS, STATIC_LOGIN)),
    ("auth-provider", Use::Refused(NO_PROGRAMS, STATIC_LOGIN)),
    ("tokenFile", Use::Refused(NO_FILES, "put the token itself in `token`")),
    (
        "client-certificate",
        Use::Refused(
            NO_FILES,
            "put the file's content in `client-certificate-data`: `kubectl config view --flatten --raw`",
        ),
    ),
    (
        "client-key",
        Use::Refused(
            NO_FILES,
            "put the file's content in `client-key-data`: `kubectl config view --flatten --raw`",
        ),
    ),
    ("username", Use::Refused("is a login that Kubernetes removed in version 1.19", STATIC_LOGIN)),
    ("password", Use::Refused("is a login that Kubernetes removed in version 1.19", STATIC_LOGIN)),
    ("as", Use::Refused(NO_IMPERSONATION, OWN_LOGIN)),
    ("as-uid", Use::Refused(NO_IMPERSONATION, OWN_LOGIN)),
    ("as-groups", Use::Refused(NO_IMPERSONATION, OWN_LOGIN)),
    ("as-user-extra", Use::Refused(NO_IMPERSONATION, OWN_LOGIN)),
];

struct SelectedEntry<'a> {
    /// `context`, `cluster` or `user`.
    what: &'static str,
    fields: &'a Fields,
}

impl<'a> SelectedEntry<'a> {
    fn context(file: &'a File) -> Result<SelectedEntry<'a>, MaterialFault> {
        let name = file.current_context.as_deref().filter(|name| !name.is_empty()).ok_or_else(|| {
            fault(
                "kubeconfig-no-context",
                "the kubeconfig has no `current-context`, so its cluster is ambiguous",
                "set it with `kubectl config use-context CONTEXT`",
            )
        })?;
        Self::named(&file.contexts, "context", name, "`current-context`")
    }

    fn of(
        entries: &'a Option<Vec<NamedEntry>>,
        context: &SelectedEntry<'_>,
        what: &'static str,
    ) -> Result<SelectedEntry<'a>, MaterialFault> {
        let name = context.text(what).ok_or_else(|| {
            fault(
                "kubeconfig-context-incomplete",
                format!("the kubeconfig's current context has no {what}"),
                format!("set one of the kubeconfig's {what}s in the context's `{what}`"),
            )
        })?;
        Self::named(entries, what, name, "the current context")
    }

    fn named(
        entries: &'a Option<Vec<NamedEntry>>,
        what: &'static str,
        name: &str,
        by: &str,
    ) -> Result<SelectedEntry<'a>, MaterialFault> {
        let mut found = entries.iter().flatten().filter(|entry| entry.name == name);
        match (found.next().map(|entry| &entry.fields), found.next()) {
            (Some(Some(fields)), None) => Ok(SelectedEntry { what, fields }),
            (Some(None), None) => Err(fault(
                "kubeconfig-entry-empty",
                format!("the {what} that {by} names is empty"),
                format!("write its fields under `{what}`"),
            )),
            (Some(_), Some(_)) => Err(fault(
                "kubeconfig-entry-twice",
                format!("the kubeconfig has two {what}s with the name that {by} gives"),
                "remove or rename one of them",
            )),
            (None, _) => Err(fault(
                "kubeconfig-entry-missing",
                format!("the kubeconfig has no {what} with the name that {by} gives"),
                format!("add it to `{what}s`, or use an existing name"),
            )),
        }
    }

    fn text(&self, field: &str) -> Option<&'a str> {
        match self.fields.get(field) {
            Some(Field::Text(text)) => Some(text.expose_secret()),
            _ => None,
        }
    }

    /// Returns a fault for each field that is refused, unknown, or of the wrong type.
    fn refused(&self, known: &[(&str, Use)]) -> Vec<MaterialFault> {
        let judge = |(name, value): (&String, &Field)| {
            let what = self.what;
            match (known.iter().find(|(field, _)| field == name).map(|(_, used)| used), value) {
                (_, Field::Absent) => None,
                (Some(Use::Refused(why, hint)), _) => Some(fault(
                    "kubeconfig-refused-field",
                    format!("the kubeconfig's {what} has `{name}`, which {why}"),
                    *hint,
                )),
                (Some(Use::Accepted), Field::Text(_)) => None,
                (Some(Use::Accepted), Field::Other) if is_text(name) => Some(fault(
                    "kubeconfig-not-text",
                    format!("the kubeconfig's {what} has a `{name}` that is not a string"),
                    "put it in quotes",
                )),
                (Some(Use::Accepted), Field::Other) => None,
                (None, _) => Some(fault(
                    "kubeconfig-unknown-field",
                    format!("the kubeconfig's {what} has an unknown field"),
                    format!("keep only the supported fields: {}", accepted(known)),
                )),
            }
        };
        self.fields.iter().filter_map(judge).collect()
    }
}

/// Whether an accepted field has to be a string.
fn is_text(field: &str) -> bool {
    !matches!(field, "extensions" | "disable-compression")
}

fn accepted(known: &[(&str, Use)]) -> String {
    let names: Vec<_> = known
        .iter()
        .filter(|(name, used)| matches!(used, Use::Accepted) && is_text(name))
        .map(|(name, _)| format!("`{name}`"))
        .collect();
    names.join(", ")
}

fn read_file(text: &str) -> Result<File, MaterialFault> {
    if text.len() > KubeAccess::MAX_LENGTH {
        return Err(fault(
            "kubeconfig-too-large",
            "the kubeconfig is larger than 1 MiB",
            "keep only the needed context: `kubectl config view --minify --flatten --raw`",
        ));
    }
    // Limits far above a kubeconfig of a hundred contexts and far below what takes noticeable time.
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! { max_depth: 64, max_nodes: 50_000, max_events: 100_000, max_aliases: 100 },
        strict_booleans: true,
    };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| {
        // The parser's own message may quote the text, including secrets.
        let place = error.location().map(|at| format!(" at its line {}, column {}", at.line(), at.column()));
        fault(
            "kubeconfig-not-yaml",
            format!("the kubeconfig can't be read{}", place.unwrap_or_default()),
            "use the output of `kubectl config view --minify --flatten --raw`",
        )
    })
}

fn read_server(cluster: &SelectedEntry<'_>) -> Result<Server, MaterialFault> {
    let url = cluster.text("server").ok_or_else(|| {
        fault(
            "kubeconfig-no-server",
            "the kubeconfig's cluster has no `server`",
            "set it to the address of the API server, `https://HOST:PORT`",
        )
    })?;
    Server::parse(url)
}

fn read_authority(cluster: &SelectedEntry<'_>) -> Result<Option<String>, MaterialFault> {
    let field = "certificate-authority-data";
    let Some(pem) = decoded(cluster, field)? else { return Ok(None) };
    let ders = read_ders(&pem).map_err(|faults| within(field, faults))?;
    read_chain(&ders).map_err(|faults| within(field, faults))?;
    Ok(Some(pem.to_string()))
}

fn read_auth(user: &SelectedEntry<'_>) -> Result<KubeAuth, MaterialFault> {
    let certificate = decoded(user, "client-certificate-data")?;
    let key = decoded(user, "client-key-data")?;
    match (user.text("token"), certificate, key) {
        (Some(token), None, None) => read_token(token),
        (None, Some(certificate), Some(key)) => read_client_certificate(&certificate, &key),
        (None, None, None) => Err(fault(
            "kubeconfig-no-login",
            "the kubeconfig's user has neither a token nor a client certificate",
            STATIC_LOGIN,
        )),
        (Some(_), ..) => Err(fault(
            "kubeconfig-two-logins",
            "the kubeconfig's user has both a token and a client certificate, which may belong to two users",
            "keep one of them",
        )),
        (None, ..) => Err(fault(
            "kubeconfig-half-login",
            "the kubeconfig's user has only half of a client certificate",
            "set both `client-certificate-data` and `client-key-data`",
        )),
    }
}

fn read_token(token: &str) -> Result<KubeAuth, MaterialFault> {
    if token.bytes().all(|b| b.is_ascii_graphic()) {
        return Ok(KubeAuth::Token(SecretString::from(token)));
    }
    Err(fault(
        "kubeconfig-token-damaged",
        "the kubeconfig's `token` contains line breaks, spaces or other invalid characters",
        "put the token on one line; decode a token from a Secret with `base64 -d` first",
    ))
}

fn read_client_certificate(certificate: &str, key: &str) -> Result<KubeAuth, MaterialFault> {
    let field = "client-certificate-data";
    let ders = read_ders(certificate).map_err(|faults| within(field, faults))?;
    let chain = read_chain(&ders).map_err(|faults| within(field, faults))?;
    let key = PrivateKey::parse(key).map_err(|fault| within("client-key-data", vec![fault]))?;
    match key_mismatch(&chain, &key) {
        Some(fault) => Err(within("client-key-data", vec![fault])),
        None => Ok(KubeAuth::ClientCertificate {
            certificate: certificate.to_owned(),
            key: SecretString::from(key.to_pem().as_str()),
        }),
    }
}

fn decoded(entry: &SelectedEntry<'_>, field: &str) -> Result<Option<Zeroizing<String>>, MaterialFault> {
    let Some(text) = entry.text(field) else { return Ok(None) };
    let joined: Zeroizing<String> = Zeroizing::new(text.split_ascii_whitespace().collect());
    let bytes = STANDARD.decode(joined.as_bytes()).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    bytes.map(Zeroizing::new).map(Some).ok_or_else(|| {
        fault(
            "kubeconfig-base64",
            format!("the kubeconfig's `{field}` is not a PEM text in base64"),
            "copy the whole value again, or make it with `base64 -w0 FILE`",
        )
    })
}

/// Rewords the first fault in a field's content as a fault of the kubeconfig.
fn within(field: &str, faults: Vec<MaterialFault>) -> MaterialFault {
    let first = faults.into_iter().next();
    let (code, message, hint) = first
        .map_or(("kubeconfig-base64", "it can't be read".to_owned(), String::new()), |first| {
            (first.code, first.message, first.hint)
        });
    fault(code, format!("the kubeconfig's `{field}` can't be used: {message}"), hint)
}

/// Returns the value of a result, or moves its fault to the others.
fn keep<T>(result: Result<T, MaterialFault>, faults: &mut Vec<MaterialFault>) -> Option<T> {
    result.map_err(|fault| faults.push(fault)).ok()
}

fn fault(code: &'static str, message: impl Into<String>, hint: impl Into<String>) -> MaterialFault {
    MaterialFault::new(Part::Kubeconfig, code, message, hint)
}
