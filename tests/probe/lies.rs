//! Servers that lie, and names that lead nowhere: each check ends within its limits of time and memory, with a
//! sentence.

use std::io::{Read as _, Write};
use std::net::{IpAddr, Ipv4Addr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use streamfleet::component::probe::{
    LookupFault, ProbeFailure, ProbeLevel, ProbeLogin, ProbeOrder, ProbePlace, ProbeTrust, PublicName,
};
use streamfleet::names::{Kind, ResourceKey};
use streamfleet::probe::{Found, ProbeLimits, Prober, Resolver, Share};

use super::pki::{Authority, Pair};
use super::stage::{Names, check, loopback, verdict};

const HOST: &str = "broker-0--orders.k.example.com";
const PASSWORD: &str = "open-sesame-4711";
const LOCAL: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const BROKER: ProbePlace = ProbePlace::Broker(0);

pub type Tls = StreamOwned<ServerConnection, TcpStream>;

/// Limits at which a test that waits for them takes a moment.
const SHORT: ProbeLimits = ProbeLimits {
    step: Duration::from_secs(2),
    name: Duration::from_secs(20),
    check: Duration::from_secs(60),
    connections: 8,
    each: 8,
};

fn order(port: u16, authority: &Authority) -> ProbeOrder {
    let name = PublicName { host: HOST.to_owned(), port };
    ProbeOrder {
        cluster: ResourceKey::new(Kind::Cluster, &"acme".parse().unwrap(), "orders"),
        bootstrap: name.clone(),
        brokers: [(0, name)].into(),
        trust: ProbeTrust::Certificates(authority.pem.clone()),
        certificate: None,
        login: Some(ProbeLogin::Scram {
            user: "orders-probe".to_owned(),
            password: PASSWORD.to_owned().into(),
        }),
    }
}

/// Checks a server that does this with each connection, and returns the level and the sentence of the failure.
fn met_by(limits: ProbeLimits, server: impl Fn(TcpStream) + Send + Sync + 'static) -> (ProbeLevel, String) {
    let listener = TcpListener::bind((LOCAL, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = Arc::new(server);
    thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            let server = Arc::clone(&server);
            thread::spawn(move || server(socket));
        }
    });
    checked(limits, &order(port, &Authority::new("nobody's")))
}

fn checked(limits: ProbeLimits, order: &ProbeOrder) -> (ProbeLevel, String) {
    let names = Names::default();
    names.set(HOST, LOCAL);
    let report = check(&Prober::new(Box::new(names), loopback(), limits), order);
    let verdict = verdict(&report, BROKER);
    (verdict.failed_at().unwrap(), verdict.to_string())
}

/// Checks a server that does this after the TLS handshake.
fn met_by_tls(
    server: impl Fn(&mut Tls) -> std::io::Result<()> + Send + Sync + 'static,
) -> (ProbeLevel, String) {
    let authority = Authority::new("an authority");
    checked(SHORT, &order(serve(&authority.server(&[HOST]), server), &authority))
}

/// Starts a server with a certificate that does this after the TLS handshake, and returns its port.
pub fn serve(own: &Pair, server: impl Fn(&mut Tls) -> std::io::Result<()> + Send + Sync + 'static) -> u16 {
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            CertificateDer::pem_slice_iter(own.certificate.as_bytes()).map(Result::unwrap).collect(),
            PrivateKeyDer::from_pem_slice(own.key.as_bytes()).unwrap(),
        )
        .unwrap();
    let (config, server) = (Arc::new(config), Arc::new(server));
    let listener = TcpListener::bind((LOCAL, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
            let server = Arc::clone(&server);
            // Errors of a client that disconnects are ignored.
            thread::spawn(move || server(&mut StreamOwned::new(connection, socket)));
        }
    });
    port
}

/// `openssl req -x509` makes such certificates. Clients that trust one accept it for its names; without its names
/// or its time they don't.
#[test]
fn a_certificate_that_is_its_own_authority_is_judged_as_clients_judge_it() {
    let quiet = |own: &Pair| {
        let port = serve(own, |stream| {
            stay(stream);
            Ok(())
        });
        let order = order(port, &Authority::new("nobody's"));
        checked(SHORT, &ProbeOrder { trust: ProbeTrust::Certificates(own.certificate.clone()), ..order }).1
    };
    let own = Authority::own(&[HOST], false);
    assert_eq!(quiet(&own), "broker 0: no answer to the login within 2 s (from 127.0.0.1)");
    let other = Authority::own(&["other.example.com"], false);
    let expected = "broker 0: TLS ends with a certificate for other.example.com (from 127.0.0.1)";
    assert_eq!(quiet(&other), expected);
    let said = quiet(&Authority::own(&[HOST], true));
    assert!(said.starts_with("broker 0: TLS ends with a certificate that expired at "), "{said}");
}

#[test]
fn an_issuer_that_has_expired_is_told_with_its_own_time() {
    let authority = Authority::new("an authority");
    let below = authority.expired_below();
    let own = below.server(&[HOST]);
    let chain = Pair { certificate: own.chain(&below), key: own.key };
    let port = serve(&chain, |stream| {
        stay(stream);
        Ok(())
    });
    let (level, said) = checked(SHORT, &order(port, &authority));
    let now = jiff::Timestamp::now().as_second();
    let begin = "broker 0: TLS ends with a certificate that expired at ";
    let end = said.strip_prefix(begin).and_then(|rest| rest.strip_suffix(" (from 127.0.0.1)"));
    let end: jiff::Timestamp = end.unwrap_or_else(|| panic!("{said}")).parse().unwrap();
    assert!(level == ProbeLevel::Tls && end.as_second() < now, "{said}");
}

/// Reads a request, and returns its correlation id.
fn asked(stream: &mut Tls) -> std::io::Result<[u8; 4]> {
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let mut request = vec![0; u32::from_be_bytes(length) as usize];
    stream.read_exact(&mut request)?;
    Ok(request[4..8].try_into().unwrap())
}

fn answer(stream: &mut Tls, correlation: [u8; 4], body: &[u8]) -> std::io::Result<()> {
    let length = u32::try_from(4 + body.len()).unwrap();
    stream.write_all(&[&length.to_be_bytes(), &correlation, body].concat())?;
    stream.flush()
}

/// Keeps a connection open until the client has closed it.
fn stay(stream: &mut impl std::io::Read) {
    let _ = std::io::copy(stream, &mut std::io::sink());
}

#[test]
fn a_server_without_tls_is_told_from_a_silent_one() {
    let (level, said) = met_by(SHORT, |mut socket| {
        let _ = socket.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        stay(&mut socket);
    });
    assert_eq!(
        (level, said.as_str()),
        (ProbeLevel::Tls, "broker 0: the TLS handshake fails: the server speaks no TLS (from 127.0.0.1)")
    );
    let (level, said) = met_by(SHORT, |mut socket| stay(&mut socket));
    assert_eq!(
        (level, said.as_str()),
        (ProbeLevel::Tls, "broker 0: no answer to the TLS handshake within 2 s (from 127.0.0.1)")
    );
    let (level, said) = met_by(SHORT, drop);
    assert_eq!(
        (level, said.as_str()),
        (ProbeLevel::Tls, "broker 0: the connection is closed during the TLS handshake (from 127.0.0.1)")
    );
    let late = ProbeLimits { name: Duration::from_secs(1), ..SHORT };
    let (level, said) = met_by(late, |mut socket| stay(&mut socket));
    assert_eq!(
        (level, said.as_str()),
        (
            ProbeLevel::Tls,
            "broker 0: the check was ended after 1 s, during the TLS handshake (from 127.0.0.1)"
        )
    );
    let late = ProbeLimits { check: Duration::from_secs(1), ..SHORT };
    let (level, said) = met_by(late, |mut socket| stay(&mut socket));
    assert_eq!(
        (level, said.as_str()),
        (
            ProbeLevel::Tls,
            "broker 0: the check was ended after 1 s, during the TLS handshake (from 127.0.0.1)"
        )
    );
}

#[test]
fn no_length_of_a_server_is_believed() {
    let is = |said: (ProbeLevel, String), what: &str| {
        assert_eq!(said, (ProbeLevel::Login, format!("broker 0: {what} (from 127.0.0.1)")));
    };
    let garbled = "the answer to the login isn't one of Kafka's protocol";
    // A frame of 2 GiB, one of a negative length, and one that is larger than any answer.
    for length in [i32::MAX, -1] {
        let said = met_by_tls(move |stream| {
            asked(stream)?;
            stream.write_all(&length.to_be_bytes())?;
            stream.flush()?;
            stay(stream);
            Ok(())
        });
        is(said, garbled);
    }
    let said = met_by_tls(|stream| {
        asked(stream)?;
        stream.write_all(&((64 << 10) + 1_i32).to_be_bytes())?;
        stream.flush()?;
        stay(stream);
        Ok(())
    });
    is(said, "the answer to the login is larger than 64 KiB");
    // Bytes without end are a length, too.
    let said = met_by_tls(|stream| {
        loop {
            stream.write_all(&[0x55; 4096])?;
        }
    });
    is(said, garbled);
    // An array of 2 Gi items, and what is left after the last value.
    for body in [&[0, 0, 0x7f, 0xff, 0xff, 0xff, 0, 0][..], &[0, 0, 0, 0, 0, 0, 1]] {
        let body = body.to_vec();
        let said = met_by_tls(move |stream| {
            let correlation = asked(stream)?;
            answer(stream, correlation, &body)?;
            stay(stream);
            Ok(())
        });
        is(said, garbled);
    }
    // An answer to another question.
    let said = met_by_tls(|stream| {
        asked(stream)?;
        answer(stream, [9; 4], &[0; 6])?;
        stay(stream);
        Ok(())
    });
    is(said, garbled);
    // Half an answer, and then the end, or silence.
    let said = met_by_tls(|stream| {
        asked(stream)?;
        stream.write_all(&[0, 0, 0, 40, 0, 0])?;
        stream.flush()
    });
    is(said, "the connection is closed during the login");
    let said = met_by_tls(|stream| {
        asked(stream)?;
        stream.write_all(&[0, 0, 0, 40, 0, 0])?;
        stream.flush()?;
        stay(stream);
        Ok(())
    });
    is(said, "no answer to the login within 2 s");
}

/// The body of an answer to a message of a mechanism.
fn said(error: i16, text: &str, message: &str) -> Vec<u8> {
    let text_length = i16::try_from(text.len()).unwrap();
    let message_length = i32::try_from(message.len()).unwrap();
    let parts: [&[u8]; 6] = [
        &error.to_be_bytes(),
        &text_length.to_be_bytes(),
        text.as_bytes(),
        &message_length.to_be_bytes(),
        message.as_bytes(),
        &[0; 8],
    ];
    parts.concat()
}

#[test]
fn a_server_has_to_prove_that_it_knows_the_password_and_its_words_are_tamed() {
    // It accepts whoever comes.
    let (level, sentence) = met_by_tls(|stream| {
        let correlation = asked(stream)?;
        answer(stream, correlation, &[0; 6])?;
        let mut length = [0; 4];
        stream.read_exact(&mut length)?;
        let mut request = vec![0; u32::from_be_bytes(length) as usize];
        stream.read_exact(&mut request)?;
        let text = String::from_utf8_lossy(&request).into_owned();
        let nonce = text.rsplit("r=").next().unwrap_or_default();
        let challenge = format!("r={nonce}more,s=AAAA,i=4096");
        answer(stream, request[4..8].try_into().unwrap(), &said(0, "", &challenge))?;
        let correlation = asked(stream)?;
        answer(stream, correlation, &said(0, "", "v=AAAA"))?;
        stay(stream);
        Ok(())
    });
    let expected = "broker 0: the server doesn't know the password that it accepts (from 127.0.0.1)";
    assert_eq!((level, sentence.as_str()), (ProbeLevel::Login, expected));

    let (_, sentence) = met_by_tls(|stream| {
        let correlation = asked(stream)?;
        answer(stream, correlation, &[0; 6])?;
        let correlation = asked(stream)?;
        let text = format!("\u{1b}[2J\u{202e}gone\n{}", "x".repeat(20_000));
        answer(stream, correlation, &said(58, &text, ""))?;
        stay(stream);
        Ok(())
    });
    assert!(sentence.starts_with("broker 0: the login of orders-probe is refused: \\u{1b}[2J"), "{sentence}");
    assert!(sentence.len() < 600 && !sentence.contains(['\u{1b}', '\u{202e}', '\n']), "{sentence}");

    // It repeats the password that it can't have learned here.
    let (_, sentence) = met_by_tls(|stream| {
        let correlation = asked(stream)?;
        answer(stream, correlation, &[0; 6])?;
        let correlation = asked(stream)?;
        answer(stream, correlation, &said(58, &format!("no {PASSWORD}"), ""))?;
        stay(stream);
        Ok(())
    });
    let expected = "broker 0: the login of orders-probe is refused: the answer repeats the secret, so it isn't shown \
                    (from 127.0.0.1)";
    assert_eq!(sentence, expected);
}

/// Counts the lookups that go on at a time.
#[derive(Default)]
struct Counting {
    now: AtomicUsize,
    most: AtomicUsize,
}

struct CountingResolver(Arc<Counting>);

impl Resolver for CountingResolver {
    fn addresses<'f>(&'f self, _: &'f str, _: Share) -> Found<'f> {
        Box::pin(async {
            let now = self.0.now.fetch_add(1, Ordering::SeqCst) + 1;
            self.0.most.fetch_max(now, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(1)).await;
            self.0.now.fetch_sub(1, Ordering::SeqCst);
            Err(LookupFault::Missing)
        })
    }
}

#[test]
fn many_clusters_share_the_connections() {
    let counting = Arc::new(Counting::default());
    let limits = ProbeLimits { connections: 20, each: 20, ..SHORT };
    let prober = Arc::new(Prober::new(Box::new(CountingResolver(Arc::clone(&counting))), loopback(), limits));
    let mut order = order(9094, &Authority::new("nobody's"));
    let name = order.bootstrap.clone();
    order.brokers = (0..10).map(|id| (id, name.clone())).collect();
    let order = Arc::new(order);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let checks: Vec<_> = (0..1000)
            .map(|_| {
                let (prober, order) = (Arc::clone(&prober), Arc::clone(&order));
                tokio::spawn(async move { prober.check(&order).await })
            })
            .collect();
        for check in checks {
            let report = check.await.unwrap();
            assert_eq!(report.verdicts.len(), 11);
            let missing = Some(ProbeFailure::Lookup(LookupFault::Missing));
            assert!(report.verdicts.iter().all(|it| it.failure == missing), "{report:#?}");
        }
    });
    let most = counting.most.load(Ordering::SeqCst);
    assert!((1..=20).contains(&most), "{most}");
}

/// Answers for one host alone. The lookups of all others never end.
struct OneAnswers(&'static str, Mutex<Vec<Share>>);

impl Resolver for OneAnswers {
    fn addresses<'f>(&'f self, host: &'f str, turn: Share) -> Found<'f> {
        Box::pin(async move {
            if host == self.0 {
                return Err(LookupFault::Missing);
            }
            // As a thread of the operating system does, it keeps its turn when nobody waits for it any more.
            self.1.lock().unwrap().push(turn);
            std::future::pending().await
        })
    }
}

#[test]
fn lookups_and_servers_without_an_answer_are_those_of_one_organization_alone() {
    let limits = ProbeLimits { connections: 32, each: 16, ..SHORT };
    let resolver = OneAnswers("orders.k.example.org", Mutex::default());
    let prober = Prober::new(Box::new(resolver), loopback(), limits);
    let order = |organization: &str, name: &str| {
        let mut order = order(9094, &Authority::new("nobody's"));
        order.cluster = ResourceKey::new(Kind::Cluster, &organization.parse().unwrap(), "orders");
        order.bootstrap.host = name.to_owned();
        order.brokers = (0..7).map(|id| (id, order.bootstrap.clone())).collect();
        order
    };
    let (silent, other) = (order("acme", HOST), order("globex", "orders.k.example.org"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let many = futures_util::future::join_all((0..8).map(|_| prober.check(&silent)));
        let one = async {
            // The others are under way by now.
            tokio::task::yield_now().await;
            prober.check(&other).await
        };
        tokio::select! {
            biased;
            _ = many => panic!("the other organization's check waits"),
            report = one => {
                let missing = Some(ProbeFailure::Lookup(LookupFault::Missing));
                assert!(report.verdicts.iter().all(|it| it.failure == missing), "{report:#?}");
            }
        }
    });
}
