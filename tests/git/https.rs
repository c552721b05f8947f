//! A repository over https, from a server that requires a token.

use std::io::{BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::{fs, thread};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::{ORDERS, SERVE, Specs, replicas};
use crate::support::proxy::tls::Authority;
use crate::support::proxy::wire::Message;
use crate::support::serve::Serve;

const TOKEN: &str = "hunter2-token";

/// A server in front of `git http-backend`. Its threads end with the test process.
struct Server {
    address: SocketAddr,
    authority: PathBuf,
}

impl Server {
    fn of(folder: &Path) -> Server {
        let authority = Arc::new(Authority::new());
        let file = folder.join("authority.pem");
        fs::write(&file, STANDARD.decode(&authority.certificate).unwrap()).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let root = folder.to_owned();
        thread::spawn(move || {
            for socket in listener.incoming().flatten() {
                let (authority, root) = (Arc::clone(&authority), root.clone());
                // Errors of a client that disconnects are ignored.
                thread::spawn(move || answer(&authority, socket, &root).unwrap_or_default());
            }
        });
        Server { address, authority: file }
    }

    fn url(&self, path: &str) -> String {
        format!("git = \"https://{}/{path}\"", self.address)
    }
}

fn answer(authority: &Authority, socket: TcpStream, root: &Path) -> std::io::Result<()> {
    let mut client = BufReader::new(authority.accept(socket)?);
    let expected = format!("authorization: basic {}", STANDARD.encode(format!("git:{TOKEN}")));
    while let Some(request) = Message::read(&mut client)? {
        let knows = request.head.lines().any(|line| line.eq_ignore_ascii_case(&expected));
        let head = |status: &str| format!("HTTP/1.1 {status}\r\n\r\n");
        let answer = if request.method_and_path().1.starts_with("/moved.git") {
            Message {
                head: head(
                    "302 Found\r\nLocation: https://localhost/specs.git/info/refs?service=git-upload-pack",
                ),
                body: vec![],
            }
        } else if let Some(bad) = bad_response(request.method_and_path().1) {
            bad
        } else if knows {
            backend(&request, root)?
        } else {
            Message { head: head("401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"git\""), body: vec![] }
        };
        answer.write(client.get_mut())?;
    }
    Ok(())
}

/// Responses of servers that are broken or no git servers.
fn bad_response(path: &str) -> Option<Message> {
    let kind = |kind: &str| format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\n\r\n");
    let git = "application/x-git-upload-pack-advertisement";
    let line = |text: &str| format!("{:04x}{text}", text.len() + 4);
    let begin = format!("{}0000", line("# service=git-upload-pack\n"));
    // A branch whose commit the server doesn't have.
    let id = "0123456789".repeat(4);
    let branch = format!("{begin}{}0000", line(&format!("{id} refs/heads/main\0ofs-delta\n")));
    // Another branch, and a name with a path traversal.
    let other = format!("{begin}{}0000", line(&format!("{id} refs/heads/../../config\0ofs-delta\n")));
    let (head, body) = match path.split_once("/info/refs") {
        Some(("/page.git", _)) => (kind("text/html"), "<html>log in</html>".to_owned()),
        Some(("/nothing.git", _)) => (kind(git), String::new()),
        Some(("/garbage.git", _)) => (kind(git), "\u{1}garbage".repeat(1000)),
        Some(("/half.git", _)) => (kind(git), begin.clone() + "00ff0123"),
        Some(("/none.git", _)) => (kind(git), format!("{begin}0000")),
        Some(("/absent.git", _)) => (kind(git), branch),
        Some(("/other.git", _)) => (kind(git), other),
        _ if path.starts_with("/absent.git") => {
            (kind("application/x-git-upload-pack-result"), "0008NAK\nPACK garbage".to_owned())
        }
        _ => return None,
    };
    Some(Message { head, body: body.into_bytes() })
}

fn backend(request: &Message, root: &Path) -> std::io::Result<Message> {
    let (method, target) = request.method_and_path();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let is_of = |line: &&str| line.to_ascii_lowercase().starts_with("content-type:");
    let kind = request.head.lines().find(is_of).and_then(|line| line.split_once(": ")).map(|(_, kind)| kind);
    let mut backend = Command::new("git")
        .arg("http-backend")
        .env("GIT_PROJECT_ROOT", root)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("REQUEST_METHOD", method)
        .env("PATH_INFO", path)
        .env("QUERY_STRING", query)
        .env("CONTENT_TYPE", kind.unwrap_or_default())
        .env("CONTENT_LENGTH", request.body.len().to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    backend.stdin.take().unwrap().write_all(&request.body)?;
    let output = backend.wait_with_output()?.stdout;
    let end = output.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
    let (head, body) = output.split_at(end + 4);
    let head = format!("HTTP/1.1 200 OK\r\n{}", String::from_utf8_lossy(head));
    Ok(Message { head, body: body.to_vec() })
}

#[test]
fn a_token_opens_a_repository_over_https_and_is_never_shown() {
    let specs = Specs::new();
    let server = Server::of(specs.remote().parent().unwrap());
    let authority = server.authority.to_str().unwrap();
    let variables = [("SSL_CERT_FILE", authority), ("STREAMFLEET_LOG", "trace")];
    let plan = |more: &[(&str, &str)]| {
        let variables: Vec<_> = variables.iter().chain(more).copied().collect();
        specs.tree.run_with("plan --config config.toml", &variables, "").says_nothing_of(&[TOKEN])
    };
    specs.set(&server.url("specs.git"), true);
    let none = "the server requires a login, and no token is set";
    plan(&[]).expect(1).says(&[none, "check the address, and that the token or key is valid"]);
    plan(&[("STREAMFLEET_GIT_TOKEN", "wrong")]).expect(1).says(&["the server refuses the token or key"]);
    plan(&[("STREAMFLEET_GIT_TOKEN", TOKEN)]).expect(2);

    let unknown = [("SSL_CERT_FILE", "/dev/null"), ("STREAMFLEET_GIT_TOKEN", TOKEN)];
    let run = specs.tree.run_with("plan --config config.toml", &unknown, "");
    run.expect(1)
        .says(&["check which server answers there; the variable SSL_CERT_FILE adds authorities for https"])
        .says_nothing_of(&[TOKEN]);

    // Redirects to another host are refused, since it might take the token.
    specs.set(&server.url("moved.git"), true);
    plan(&[("STREAMFLEET_GIT_TOKEN", TOKEN)]).expect(1).says(&["cannot redirect from"]);

    fs::write(specs.tree.beside("token"), format!("{TOKEN}\n")).unwrap();
    specs.set(&format!("{}\ntoken_file = \"token\"", server.url("specs.git")), true);
    let serve = Serve::start_with(&specs.tree, SERVE, &variables);
    replicas(&serve, &specs, "3");
    specs.tree.edit(ORDERS, "kafka_units: 1", "kafka_units: 2");
    specs.push("grow");
    serve.signal("HUP");
    replicas(&serve, &specs, "6");
    assert!(!serve.log().contains(TOKEN));
    assert_eq!(serve.stop(), Some(0));

    fs::write(specs.tree.beside("token"), "\n").unwrap();
    plan(&[]).expect(0).says(&["/token from `source.token_file`: it is empty"]);
}

#[test]
fn what_lies_changes_nothing() {
    let specs = Specs::new();
    let server = Server::of(specs.remote().parent().unwrap());
    let authority = server.authority.to_str().unwrap();
    let variables = [("SSL_CERT_FILE", authority), ("STREAMFLEET_GIT_TOKEN", TOKEN)];
    let run = |words: &str| specs.tree.run_with(words, &variables, "");
    let mut said = Vec::new();
    for name in ["page", "nothing", "garbage", "half", "none", "absent", "other"] {
        specs.set(&server.url(&format!("{name}.git")), true);
        let error = run("plan --config config.toml").expect(1).err;
        let because = error.lines().find_map(|line| line.split_once(".git: ")).map(|(_, why)| why.to_owned());
        said.push(format!("{name}: {}", because.unwrap_or(error)));
    }
    insta::assert_snapshot!(said.join("\n"));

    // The same with a fetched commit.
    specs.set(&server.url("specs.git"), true);
    run("apply --yes --config config.toml").expect(0);
    run("plan --config config.toml").expect(0);
    let before = specs.target();
    let (real, aside) = (specs.remote(), specs.tree.beside("aside.git"));
    fs::rename(&real, &aside).unwrap();
    for (what, text) in [("HEAD", "garbage"), ("packed-refs", "garbage"), ("refs/heads/main", "garbage")] {
        specs.git("clone --quiet --bare ../aside.git ../specs.git");
        fs::write(real.join(what), text).unwrap();
        run("apply --yes --config config.toml")
            .expect(0)
            .says(&["cannot fetch the specs; using the last fetched commit"]);
        assert_eq!(specs.target(), before, "{what}");
        fs::remove_dir_all(&real).unwrap();
    }

    // The same in a running daemon.
    let serve = Serve::start_with(&specs.tree, SERVE, &variables);
    let told = |count: usize| {
        let told = || serve.log().matches("stays active").count();
        serve.until("it says why nothing is fetched", || (told() >= count).then_some(()));
    };
    told(1);
    specs.git("clone --quiet --bare ../aside.git ../specs.git");
    fs::write(real.join("refs/heads/main"), "garbage").unwrap();
    serve.signal("HUP");
    told(2);
    assert_eq!(specs.target(), before);
    fs::remove_dir_all(&real).unwrap();
    fs::rename(&aside, &real).unwrap();
    specs.tree.edit(ORDERS, "kafka_units: 1", "kafka_units: 2");
    specs.push("grow");
    serve.signal("HUP");
    replicas(&serve, &specs, "6");
    assert_eq!(serve.stop(), Some(0));
}
