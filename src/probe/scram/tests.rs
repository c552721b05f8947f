use super::*;

const NONCE: &str = "rOprNGfwEbeRWgbNEkqO";

fn password() -> SecretString {
    SecretString::from("pencil".to_owned())
}

fn opening() -> Opening {
    Opening::with_nonce("user", NONCE.to_owned())
}

fn challenge(rounds: u32) -> String {
    format!("r={NONCE}%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i={rounds}")
}

/// The server's side of the exchange, by the formulas of RFC 5802, section 3.
fn answer(proof: &Proof, known: &str) -> Vec<u8> {
    let salt = STANDARD.decode("W22ZaJ0SNY7soEsUEjb6gQ==").unwrap();
    let mut salted = [0; digest::SHA512_OUTPUT_LEN];
    let rounds = NonZeroU32::new(4096).unwrap();
    pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA512, rounds, &salt, known.as_bytes(), &mut salted);
    let message = std::str::from_utf8(&proof.message).unwrap();
    let (without_proof, _) = message.split_once(",p=").unwrap();
    let whole = format!("n=user,r={NONCE},{},{without_proof}", challenge(4096));
    let key = signed(&salted, b"Server Key");
    format!("v={}", STANDARD.encode(*signed(&*key, whole.as_bytes()))).into_bytes()
}

#[test]
fn both_sides_prove_that_they_know_the_password() {
    assert_eq!(opening().message(), format!("n,,n=user,r={NONCE}").into_bytes());
    let proof = opening().prove(challenge(4096).as_bytes(), &password()).unwrap();
    let sent = std::str::from_utf8(&proof.message).unwrap();
    assert!(sent.starts_with(&format!("c=biws,r={NONCE}%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=")), "{sent}");
    assert!(proof.is_answered_by(&answer(&proof, "pencil")));
    assert!(!proof.is_answered_by(&answer(&proof, "pen")));
    for lie in [&b""[..], b"v=", b"v=AAAA", b"e=invalid-proof"] {
        assert!(!proof.is_answered_by(lie));
    }
}

#[test]
fn characters_of_the_format_are_escaped_in_the_name() {
    let opening = Opening::with_nonce("a=b,c", "n".to_owned());
    assert_eq!(opening.message(), b"n,,n=a=3Db=2Cc,r=n");
}

#[test]
fn a_server_that_lies_is_refused() {
    let nonce = format!("r={NONCE}x");
    for lie in [
        String::new(),
        "r=another,s=AAAA,i=4096".to_owned(),
        // Nothing was added to our nonce.
        format!("r={NONCE},s=AAAA,i=4096"),
        format!("{nonce},s=!,i=4096"),
        format!("{nonce},s=AAAA,i=0"),
        format!("{nonce},s=AAAA,i=-1"),
        format!("{nonce},i=4096,s=AAAA"),
        challenge(MAX_ROUNDS + 1),
    ] {
        assert_eq!(opening().prove(lie.as_bytes(), &password()).err(), Some(Broken), "{lie}");
    }
    assert_eq!(opening().prove(&[0xff], &password()).err(), Some(Broken));
}
