//! The service account of the pod that Streamfleet runs in.
//!
//! Its files and address come from Kubernetes and from the administrator, not from a tenant, so any address may be
//! connected to, and a file is read.

use std::{env, fs, io};

use camino::{Utf8Path, Utf8PathBuf};
use http::Request;
use http::header::{AUTHORIZATION, HeaderValue};
use kube::client::Body;
use tower::BoxError;
use tower::filter::{FilterLayer, Predicate};
use zeroize::Zeroizing;

use crate::spec::kubeconfig::{KubeAccess, KubeAuth};

/// The folder in which Kubernetes mounts the files of a service account.
const FOLDER: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// The variable that names another folder, such as that of a projected volume with a shorter-lived token.
const FOLDER_VARIABLE: &str = "STREAMFLEET_SERVICE_ACCOUNT_DIR";

/// The variables with the address of the API server, which Kubernetes sets in every container.
const HOST: &str = "KUBERNETES_SERVICE_HOST";
const PORT: &str = "KUBERNETES_SERVICE_PORT";

/// Returns how the pod reaches its own Kubernetes cluster; the error is the end of a sentence.
pub fn service_account() -> Result<KubeAccess, String> {
    let folder = variable(FOLDER_VARIABLE).map_or_else(|| FOLDER.into(), Utf8PathBuf::from);
    access(variable(HOST), variable(PORT), &folder)
}

fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

fn access(host: Option<String>, port: Option<String>, folder: &Utf8Path) -> Result<KubeAccess, String> {
    let unset = |name: &str| format!("streamfleet doesn't run in a pod: the variable {name} is not set");
    let host = host.ok_or_else(|| unset(HOST))?.to_ascii_lowercase();
    let port = port.ok_or_else(|| unset(PORT))?;
    let (token_file, authority) = (folder.join("token"), folder.join("ca.crt"));
    let read = |path: &Utf8Path| {
        fs::read_to_string(path)
            .map(Zeroizing::new)
            .map_err(|error| format!("cannot read `{path}` of the pod's service account: {error}"))
    };
    read(&token_file)?;
    let certificate_authority = read(&authority)?.to_string();
    // An IPv6 address stands in brackets in a URL.
    let address = if host.contains(':') { format!("[{host}]") } else { host.clone() };
    Ok(KubeAccess {
        server: format!("https://{address}:{port}"),
        host,
        tls_server_name: None,
        certificate_authority: Some(certificate_authority),
        auth: KubeAuth::TokenFile(token_file),
        namespace: None,
    })
}

/// Returns the layer that adds the token of a file to each request; none if the access has another login.
pub(super) fn token_layer(access: &KubeAccess) -> Option<FilterLayer<TokenOfFile>> {
    match &access.auth {
        KubeAuth::TokenFile(path) => Some(FilterLayer::new(TokenOfFile { path: path.clone() })),
        KubeAuth::Token(_) | KubeAuth::ClientCertificate { .. } => None,
    }
}

/// Reads the token for each request, since Kubernetes replaces the file before the token expires. The file is small
/// and in memory.
#[derive(Clone)]
pub(super) struct TokenOfFile {
    path: Utf8PathBuf,
}

impl Predicate<Request<Body>> for TokenOfFile {
    type Request = Request<Body>;

    fn check(&mut self, mut request: Request<Body>) -> Result<Request<Body>, BoxError> {
        let unread = |source| TokenUnread { path: self.path.clone(), source };
        let token = fs::read_to_string(&self.path).map(Zeroizing::new).map_err(unread)?;
        let header = Zeroizing::new(format!("Bearer {}", token.trim()));
        let mut value = HeaderValue::from_str(&header)
            .map_err(|_| unread(io::Error::new(io::ErrorKind::InvalidData, "it is not a token")))?;
        value.set_sensitive(true);
        request.headers_mut().insert(AUTHORIZATION, value);
        Ok(request)
    }
}

#[derive(Debug, thiserror::Error)]
#[error("cannot read the token `{path}` of the pod's service account: {source}")]
struct TokenUnread {
    path: Utf8PathBuf,
    source: io::Error,
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Pod(tempfile::TempDir);

    impl Pod {
        fn new() -> Pod {
            let pod = Pod(tempfile::tempdir().unwrap());
            fs::write(pod.folder().join("token"), "first\n").unwrap();
            fs::write(pod.folder().join("ca.crt"), "a certificate").unwrap();
            pod
        }

        fn folder(&self) -> &Utf8Path {
            Utf8Path::from_path(self.0.path()).unwrap()
        }

        fn access(&self, host: &str) -> Result<KubeAccess, String> {
            access(Some(host.to_owned()), Some("443".to_owned()), self.folder())
                .map_err(|error| error.replace(self.folder().as_str(), "DIR"))
        }
    }

    #[test]
    fn the_address_is_that_of_the_pods_variables() {
        let pod = Pod::new();
        for (host, server, of) in [
            ("10.96.0.1", "https://10.96.0.1:443", "10.96.0.1"),
            ("fd00::1", "https://[fd00::1]:443", "fd00::1"),
            ("API.example.com", "https://api.example.com:443", "api.example.com"),
        ] {
            let access = pod.access(host).unwrap();
            assert_eq!((access.server.as_str(), access.host.as_str()), (server, of));
        }
    }

    #[test]
    fn what_is_missing_is_named() {
        let pod = Pod::new();
        let outside = "streamfleet doesn't run in a pod: the variable KUBERNETES_SERVICE_HOST is not set";
        assert_eq!(access(None, None, pod.folder()).unwrap_err(), outside);
        for file in ["ca.crt", "token"] {
            fs::remove_file(pod.folder().join(file)).unwrap();
            let expected = format!(
                "cannot read `DIR/{file}` of the pod's service account: No such file or directory (os error 2)"
            );
            assert_eq!(pod.access("10.96.0.1").unwrap_err(), expected);
        }
    }

    #[test]
    fn each_request_has_the_token_that_is_in_the_file_then_and_it_is_not_printed() {
        let pod = Pod::new();
        let mut token = TokenOfFile { path: pod.folder().join("token") };
        let mut sent = || token.check(Request::new(Body::empty())).map(|request| request.headers().clone());
        assert_eq!(sent().unwrap()[AUTHORIZATION], "Bearer first");
        fs::write(pod.folder().join("token"), "second").unwrap();
        let headers = sent().unwrap();
        assert_eq!(headers[AUTHORIZATION], "Bearer second");
        assert!(!format!("{headers:?}").contains("second"));
        fs::write(pod.folder().join("token"), "a\u{7}b").unwrap();
        assert!(sent().unwrap_err().to_string().ends_with(": it is not a token"));
        fs::remove_file(pod.folder().join("token")).unwrap();
        assert!(sent().unwrap_err().to_string().contains("No such file"));
    }
}
