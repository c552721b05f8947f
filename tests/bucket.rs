//! Buckets for tiered storage, made at a real server with the S3 API, and at one that answers as it is told to.

mod server;

use std::io::{BufReader, Write as _};
use std::sync::{Arc, Mutex};

use crate::probe::lies::serve;
use crate::probe::pki::Authority;
use crate::support::proxy::wire::Message;
use crate::support::serve::Serve;
use crate::support::{Run, Tree};
use server::{REGION, Server, secret_of};

const APPLY: &str = "apply tree --yes --config config.toml";
const ACCOUNT: &str = "acme/cloud-accounts/minio.yaml";
const CLUSTER: &str = "acme/clusters/history.yaml";
const BUCKET: &str = "acme-kafka-history";

/// A tree whose cluster asks for a bucket at an endpoint, and that trusts an authority.
struct Lab {
    tree: Tree,
    authority: String,
}

impl Lab {
    fn new(endpoint: &str, authority: &str, user: &str) -> Lab {
        let tree = Tree::example("tiered-storage");
        tree.edit(ACCOUNT, "https://s3.storage.example.com", endpoint);
        let lab = Lab { tree, authority: authority.to_owned() };
        lab.log_in("EXAMPLEKEYFORTIERING", user);
        lab.tree.edit(ACCOUNT, "ExampleOnly/TieringSecretKey000000000000", &secret_of(user));
        lab.tree.edit(
            CLUSTER,
            "  tiered_storage_provider:",
            "  tiered_storage_create_bucket: true\n  tiered_storage_provider:",
        );
        lab.allow("127.0.0.0/8");
        lab
    }

    fn at(server: &Server, user: &str) -> Lab {
        Lab::new(&server.url(), &server.authority(), user)
    }

    fn allow(&self, range: &str) {
        let settings = format!("[targets]\nallow_addresses = [\"{range}\"]\n");
        std::fs::write(self.tree.beside("config.toml"), settings).unwrap();
    }

    fn log_in(&self, before: &str, user: &str) {
        self.tree.edit(ACCOUNT, before, user);
    }

    fn apply(&self) -> Run {
        self.tree.run_with(APPLY, &[("SSL_CERT_FILE", &self.authority)], "")
    }

    fn history(&self) -> String {
        std::fs::read_to_string(self.tree.path().join(".streamfleet/state/audit.jsonl")).unwrap()
    }
}

#[test]
fn a_bucket_is_made_once_and_stays() {
    let server = Server::start();
    let lab = Lab::at(&server, "acme");
    let effect = "makes bucket acme-kafka-history in region eu-central-1: private, encrypted, never deleted by streamfleet; \
                  one that the account has already is used as it is";
    lab.tree.run("plan tree --config config.toml").expect(2).says(&[effect]);
    assert!(!server.has(BUCKET));
    lab.apply().expect(0);
    assert!(server.has(BUCKET));
    lab.apply().expect(0).says(&["Nothing to do"]);

    // Neither the field nor the cluster takes the bucket with it.
    lab.tree.edit(CLUSTER, "  tiered_storage_create_bucket: true\n", "");
    lab.apply().expect(0);
    lab.tree.edit(CLUSTER, "kafka_units: 1", "kafka_units: 1\ndeletion_protection: false");
    lab.apply().expect(0);
    lab.tree.remove(CLUSTER);
    lab.apply().expect(0);
    assert!(server.has(BUCKET));
}

#[test]
fn a_bucket_that_the_account_has_is_used_and_one_of_somebody_else_is_not() {
    let server = Server::start();
    let first = Lab::at(&server, "acme");
    first.apply().expect(0);
    let second = Lab::at(&server, "acme");
    second.apply().expect(0);
    second.apply().expect(0).says(&["Nothing to do"]);

    let other = Lab::at(&server, "globex");
    let url = server.url();
    other.apply().expect(1).says(&[
        &format!("cannot make bucket `acme-kafka-history` at {url}: somebody else has a bucket of that name"),
        "choose another `tiered_storage_bucket_name`: all accounts of a service share the names",
    ]);
    // Its objects wait for it.
    assert!(
        !other.tree.output().iter().any(|(path, _)| path.contains("kafka-history")),
        "{:?}",
        other.tree.output()
    );
    other.tree.edit(CLUSTER, BUCKET, "globex-kafka-history");
    other.apply().expect(0);
    assert!(server.has("globex-kafka-history"));
}

#[test]
fn a_cluster_waits_for_its_bucket_and_holds_up_no_other() {
    let server = Server::start();
    Lab::at(&server, "acme").apply().expect(0);
    let lab = Lab::at(&server, "globex");
    let trusts = [("SSL_CERT_FILE", lab.authority.as_str())];
    let serve = Serve::start_with(&lab.tree, "serve --specs tree --config config.toml", &trusts);
    serve.says(&["ERROR", "cluster acme/history", "somebody else has a bucket of that name", " again="]);
    let plain = "apiVersion: streamfleet/v1\nkind: Cluster\norganization: acme\ninfrastructure: eu\nidentifier: plain\n\
                 cluster_type: kafka\ntenancy_mode: Shared\nkafka_units: 1\nadvanced_config:\n  version: 4.3.1\n";
    lab.tree.write("acme/clusters/plain.yaml", plain);
    serve.has_made(&["cluster acme/plain"]);
    lab.tree.edit(CLUSTER, BUCKET, "globex-kafka-history");
    serve.has_made(&["cluster acme/history"]);
    assert!(server.has("globex-kafka-history"));
    assert_eq!(serve.stop(), Some(0));
}

#[test]
fn what_a_service_refuses_is_said_in_a_sentence_of_its_own() {
    let server = Server::start();
    let refused = |lab: &Lab, why: &str, hint: &str| {
        let said = lab.apply().expect(1);
        let attempt = format!("cannot make bucket `acme-kafka-history` at {}: {why}", server.url());
        said.says(&[&attempt, hint]);
        assert!(!server.has(BUCKET));
    };
    let lab = Lab::at(&server, "reader");
    refused(
        &lab,
        "the access key may not do that (403)",
        "allow the keys of cloud account acme/minio `s3:CreateBucket`",
    );
    lab.tree.edit(ACCOUNT, "aws_access_key_id = reader", "aws_access_key_id = nobody");
    refused(&lab, "the service doesn't know the access key", "correct `aws_access_key_id` in `credentials`");
    lab.tree.edit(ACCOUNT, "aws_access_key_id = nobody", "aws_access_key_id = acme");
    refused(
        &lab,
        "the secret key isn't that of the access key",
        "correct `aws_secret_access_key` in `credentials` of cloud account acme/minio",
    );
    lab.tree.edit(ACCOUNT, &secret_of("reader"), &secret_of("acme"));
    lab.tree.edit(CLUSTER, "cloud_region: eu-central-1", "cloud_region: mars-1");
    refused(
        &lab,
        &format!("the service expects region {REGION}, and region mars-1 is set"),
        "correct `cloud_region` of the cluster, or `region` of cloud account acme/minio",
    );
    lab.tree.edit(CLUSTER, "cloud_region: mars-1", "cloud_region: eu-central-1");
    lab.tree.edit(ACCOUNT, "[default]", "[other]");
    refused(
        &lab,
        "the credentials of cloud account acme/minio have no access keys",
        "a section `[default]` with `aws_access_key_id` and `aws_secret_access_key`",
    );
    lab.tree.edit(ACCOUNT, "[other]", "[default]");
    lab.allow("10.0.0.0/8");
    refused(
        &lab,
        "its address 127.0.0.1 is ",
        "allow its address in the settings: `allow_addresses` under `[targets]`",
    );
    lab.allow("127.0.0.0/8");
    lab.apply().expect(0);
    assert!(server.has(BUCKET));
}

const TAKEN: (&str, &str) = ("409 Conflict", "BucketAlreadyOwnedByYou");

/// A service that answers each request with the next of these statuses and codes, or documents, and notes the requests.
struct Told {
    port: u16,
    authority: tempfile::NamedTempFile,
    asked: Arc<Mutex<Vec<(String, String)>>>,
}

impl Told {
    fn answering(answers: &'static [(&'static str, &'static str)]) -> Told {
        let authority = Authority::new("an authority");
        let asked: Arc<Mutex<Vec<(String, String)>>> = Arc::default();
        let noted = Arc::clone(&asked);
        let port = serve(&authority.server(&["localhost"]), move |stream| {
            let mut reader = BufReader::new(stream);
            let Some(request) = Message::read(&mut reader)? else { return Ok(()) };
            let (method, path) = request.method_and_path();
            let number = {
                let mut noted = noted.lock().unwrap();
                assert!(
                    request.head.contains("authorization: AWS4-HMAC-SHA256 Credential=acme/"),
                    "{}",
                    request.head
                );
                noted.push((format!("{method} {path}"), String::from_utf8(request.body.clone()).unwrap()));
                noted.len() - 1
            };
            let Some((status, code)) = answers.get(number) else {
                // Silent until the client gives up.
                return std::io::copy(&mut reader, &mut std::io::sink()).map(drop);
            };
            let body = match code.is_empty() || code.starts_with('<') {
                true => (*code).to_owned(),
                false => format!("<Error><Code>{code}</Code></Error>"),
            };
            let head =
                format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", body.len());
            let body = if method == "HEAD" { "" } else { &body };
            reader.get_mut().write_all(format!("{head}{body}").as_bytes())
        });
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), &authority.pem).unwrap();
        Told { port, authority: file, asked }
    }

    fn lab(&self) -> Lab {
        let authority = self.authority.path().display().to_string();
        Lab::new(&format!("https://localhost:{}", self.port), &authority, "acme")
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().iter().map(|(request, _)| request.clone()).collect()
    }
}

#[test]
fn a_new_bucket_is_encrypted_and_closed_to_the_public() {
    let told = Told::answering(&[("404 Not Found", ""), ("200 OK", ""), ("200 OK", ""), ("200 OK", "")]);
    told.lab().apply().expect(0);
    let put = format!("PUT /{BUCKET}");
    assert_eq!(
        told.asked(),
        [
            format!("HEAD /{BUCKET}"),
            put.clone(),
            format!("{put}?publicAccessBlock="),
            format!("{put}?encryption=")
        ]
    );
    let asked = told.asked.lock().unwrap();
    let says = |number: usize, words: &str| assert!(asked[number].1.contains(words), "{}", asked[number].1);
    says(1, "<LocationConstraint>eu-central-1</LocationConstraint>");
    for setting in ["BlockPublicAcls", "IgnorePublicAcls", "BlockPublicPolicy", "RestrictPublicBuckets"] {
        says(2, &format!("<{setting}>true</{setting}>"));
    }
    says(3, "<SSEAlgorithm>AES256</SSEAlgorithm>");
}

/// Keys that may make buckets, and not look at them.
#[test]
fn a_bucket_that_could_not_be_looked_for_is_made_like_a_missing_one() {
    let told = Told::answering(&[("403 Forbidden", ""), ("200 OK", ""), ("200 OK", ""), ("200 OK", "")]);
    let lab = told.lab();
    lab.apply().expect(0);
    assert_eq!(told.asked().len(), 4);
    assert!(
        lab.history().contains("made bucket acme-kafka-history for cluster acme/history"),
        "{}",
        lab.history()
    );
}

#[test]
fn a_bucket_whose_making_was_interrupted_is_finished_and_one_that_was_there_is_left_as_it_is() {
    let there = Told::answering(&[("200 OK", ""), TAKEN]);
    there.lab().apply().expect(0);
    assert_eq!(there.asked().len(), 2);

    let failing = Told::answering(&[
        ("404 Not Found", ""),
        ("200 OK", ""),
        ("500 Internal Server Error", "InternalError"),
        ("200 OK", ""),
        TAKEN,
        ("200 OK", ""),
        ("200 OK", ""),
    ]);
    let lab = failing.lab();
    lab.apply().expect(1).says(&["the service answers 500 Internal Server Error (InternalError)"]);
    lab.apply().expect(0);
    assert_eq!(failing.asked().len(), 7);
    lab.apply().expect(0).says(&["Nothing to do"]);
    let history = lab.history();
    assert!(history.contains("making bucket acme-kafka-history for cluster acme/history"), "{history}");
    assert!(history.contains("made bucket acme-kafka-history for cluster acme/history"), "{history}");
    assert!(!history.contains(&secret_of("acme")));

    // The service failed, and made it all the same.
    let unsure = Told::answering(&[
        ("404 Not Found", ""),
        ("500 Internal Server Error", "InternalError"),
        ("200 OK", ""),
        TAKEN,
        ("200 OK", ""),
        ("200 OK", ""),
    ]);
    let lab = unsure.lab();
    lab.apply().expect(1).says(&["the service answers 500 Internal Server Error (InternalError)"]);
    lab.apply().expect(0);
    assert_eq!(unsure.asked().len(), 6, "its public access is blocked, and it is encrypted");
}

/// Keys that may not look can't tell whether an interrupted run began to make the bucket.
#[test]
fn a_bucket_that_cannot_be_seen_is_left_as_it_is_by_the_run_after_a_failed_one() {
    let told = Told::answering(&[
        ("403 Forbidden", ""),
        ("500 Internal Server Error", "InternalError"),
        ("403 Forbidden", ""),
        TAKEN,
    ]);
    let lab = told.lab();
    lab.apply().expect(1).says(&["the service answers 500 Internal Server Error (InternalError)"]);
    lab.apply().expect(0);
    assert_eq!(told.asked().len(), 4);
    assert!(
        lab.history().contains("had it before, so it isn't made, and is used as it is"),
        "{}",
        lab.history()
    );

    // Once it is known that the run made it, it is finished.
    let made = Told::answering(&[
        ("403 Forbidden", ""),
        ("200 OK", ""),
        ("500 Internal Server Error", "InternalError"),
        ("403 Forbidden", ""),
        TAKEN,
        ("200 OK", ""),
        ("200 OK", ""),
    ]);
    let lab = made.lab();
    lab.apply().expect(1);
    lab.apply().expect(0);
    assert_eq!(made.asked().len(), 7);
}

/// AWS would make the account's own bucket again there, and answer as if it were new.
#[test]
fn in_the_first_region_a_bucket_is_not_made_a_second_time() {
    const OURS: &str = "<ListAllMyBucketsResult><Buckets><Bucket><Name>acme-kafka-history</Name></Bucket></Buckets>\
                        </ListAllMyBucketsResult>";
    const OTHERS: &str = "<ListAllMyBucketsResult><Buckets/></ListAllMyBucketsResult>";
    let first_region = |told: &Told| {
        let lab = told.lab();
        lab.tree.edit(CLUSTER, "cloud_region: eu-central-1", "cloud_region: us-east-1");
        lab
    };
    let (head, list) = (format!("HEAD /{BUCKET}"), format!("GET /?prefix={BUCKET}"));
    let own = Told::answering(&[("200 OK", ""), ("200 OK", OURS)]);
    let lab = first_region(&own);
    lab.apply().expect(0);
    assert_eq!(own.asked(), [head.clone(), list.clone()]);
    let found = "found bucket acme-kafka-history for cluster acme/history: cloud account acme/minio had it before, so it \
                 isn't made, and is used as it is";
    assert!(lab.history().contains(found), "{}", lab.history());
    lab.apply().expect(0).says(&["Nothing to do"]);

    let foreign = Told::answering(&[("200 OK", ""), ("200 OK", OTHERS)]);
    first_region(&foreign).apply().expect(1).says(&["somebody else has a bucket of that name"]);
    assert_eq!(foreign.asked(), [head, list]);

    let refused = Told::answering(&[("200 OK", ""), ("403 Forbidden", "AccessDenied")]);
    let said = first_region(&refused).apply().expect(1);
    said.says(&["the access key may not do that (403)", "in us-east-1 also `s3:ListAllMyBuckets`"]);

    // Keys that may not look may make one that nobody has.
    let hidden = [("403 Forbidden", ""), ("200 OK", OTHERS), ("200 OK", ""), ("200 OK", ""), ("200 OK", "")];
    let hidden = Told::answering(Box::leak(Box::new(hidden)));
    first_region(&hidden).apply().expect(0);
    assert_eq!(hidden.asked().len(), 5);
}

#[test]
fn a_clock_that_is_wrong_and_a_service_that_is_silent_are_told_apart() {
    let skewed = Told::answering(&[("403 Forbidden", ""), ("403 Forbidden", "RequestTimeTooSkewed")]);
    skewed.lab().apply().expect(1).says(&[
        "the clock of this host differs too much from that of the service",
        "set the clock of this host, for example with an NTP client",
    ]);
    let silent = Told::answering(&[]);
    silent.lab().apply().expect(1).says(&["no answer within 10 s", "check the service, the network to it"]);
}
