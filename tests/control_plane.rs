//! Tests of the control plane that other tests use.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Command, Stdio};

use streamfleet::spec::kubeconfig::{KubeAccess, KubeAuth};

use crate::support::control_plane::{ControlPlane, Folder, until};

/// Whether a process runs. A zombie doesn't.
fn is_alive(process: u32) -> bool {
    fs::read_to_string(format!("/proc/{process}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

#[test]
fn a_kubeconfig_of_a_service_account_is_what_a_spec_takes_and_allows_what_its_roles_do() {
    let plane = ControlPlane::shared();
    let namespace = plane.namespace();
    let kubeconfig = plane.service_account(&namespace, "tenant");
    for text in [&kubeconfig, &plane.kubeconfig()] {
        let access = KubeAccess::parse(text).unwrap();
        assert!(access.certificate_authority.is_some() && matches!(access.auth, KubeAuth::Token(_)));
        assert!(access.denied_address().is_some_and(|why| why.contains("loopback")), "{}", access.server);
    }

    let list = format!("get configmaps --namespace={namespace}");
    plane.kubectl_with(&kubeconfig, &list).expect(1).says(&[&format!(
        r#"User "system:serviceaccount:{namespace}:tenant" cannot list resource "configmaps""#
    )]);
    for role in [
        "create role reader --verb=list --resource=configmaps".to_owned(),
        format!("create rolebinding reader --role=reader --serviceaccount={namespace}:tenant"),
    ] {
        plane.kubectl(&format!("{role} --namespace={namespace}"), "").expect(0);
    }
    // A stored role takes a moment to become active.
    until("the role holds", || (plane.kubectl_with(&kubeconfig, &list).code == 0).then_some(()));
    plane.kubectl_with(&kubeconfig, "get configmaps --namespace=default").expect(1).says(&["cannot list"]);
}

#[test]
fn a_server_that_restarts_has_what_it_had_and_nothing_is_left_when_the_test_is_over() {
    let mut plane = ControlPlane::start();
    let (namespace, kubeconfig) = (plane.namespace(), plane.kubeconfig());
    let get = format!("get namespace {namespace}");
    plane.stop();
    plane.kubectl(&get, "").expect(1).says(&["was refused"]);
    plane.start_again();
    assert_eq!(plane.kubeconfig(), kubeconfig);
    plane.kubectl(&get, "").expect(0);

    plane.run_controllers();
    plane.kubectl(&format!("delete namespace {namespace} --timeout=100s"), "").expect(0);
    plane.kubectl(&get, "").expect(1).says(&["not found"]);

    let (processes, folder) = (plane.processes(), plane.folder());
    assert!(processes.len() == 3 && processes.iter().all(|process| is_alive(*process)));
    drop(plane);
    assert!(!processes.iter().any(|process| is_alive(*process)));
    assert!(!folder.exists());
}

#[test]
fn nothing_is_left_of_a_test_process_that_is_killed() {
    let mut process = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "control_plane::waits_to_be_killed", "--ignored", "--nocapture"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines().map(Result::unwrap);
    let line = lines.find_map(|line| Some(line.split_once("plane: ")?.1.to_owned())).expect("it has a plane");
    let (folder, processes) = line.split_once(' ').unwrap();
    let processes: Vec<u32> = processes.split(' ').map(|process| process.parse().unwrap()).collect();
    assert!(processes.len() == 2 && processes.iter().all(|process| is_alive(*process)));

    process.kill().unwrap();
    process.wait().unwrap();
    until("they ended with it", || (!processes.iter().any(|process| is_alive(*process))).then_some(()));
    drop(Folder::new());
    assert!(!Path::new(folder).exists());
}

#[test]
#[ignore = "another test runs it and kills it"]
fn waits_to_be_killed() {
    // From a thread that ends, as each test's does.
    let plane = std::thread::spawn(ControlPlane::start).join().unwrap();
    let processes: Vec<String> = plane.processes().iter().map(u32::to_string).collect();
    println!("plane: {} {}", plane.folder().display(), processes.join(" "));
    let _ = std::io::stdin().read(&mut [0]);
}
