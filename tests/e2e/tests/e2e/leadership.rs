//! H-2: two controllers never act at the same time; a standby takes over; a frozen leader that wakes up ends.

use std::time::Duration;

use rollback_api::Backend;
use rollback_e2e::objects::{World, named, rollback};
use rollback_e2e::soon;
use rollback_e2e::system::quick;
use rollback_rig::install::ready;
use rollback_rig::{ControlPlane, Exit, Options, free_port};

/// Longer than a lease.
const TAKE_OVER: Duration = Duration::from_secs(60);

#[tokio::test]
async fn one_leads_the_other_takes_over() {
    let cp = ControlPlane::launch(Options::default()).await.unwrap();
    let installed = cp.install(&quick()).await.unwrap();
    cp.apply("apiVersion: v1\nkind: Namespace\nmetadata: { name: shop }\n").unwrap();
    let world = World::new(cp.client().unwrap(), "shop");
    let admin = free_port().unwrap();
    let second = cp.controller(&quick(), admin).await.unwrap();
    let standby = second.start().unwrap();

    let a = world.deploy("payments", "a", "True").await;
    world.deploy("payments", "b", "True").await;
    world.deploy("payments", "c", "True").await;
    let first = world.roll_back(&named("first", rollback("payments", Backend::Noop))).await.unwrap();
    assert_eq!(world.ended(&first).await.0, Ok(()));
    assert!(!standby.log().contains("payments"), "the standby did something:\n{}", standby.log());

    // Frozen past its lease, the leader is replaced; thawed, it must not act any more.
    installed.controller.freeze().unwrap();
    let next = world.roll_back(&named("next", rollback("payments", Backend::Noop))).await.unwrap();
    assert_eq!(world.ended(&next).await.0, Ok(()), "{}", standby.log());
    ready(&standby, admin).await.unwrap();
    installed.controller.thaw().unwrap();
    match installed.controller.wait(TAKE_OVER).await.unwrap() {
        Exit::Code(0) => panic!("a lost lease is no success:\n{}", installed.controller.log()),
        Exit::Code(_) | Exit::Signal(_) => {}
    }
    // Killed, it leaves the lease behind; the next one waits it out.
    standby.kill().unwrap();
    let third = second.start().unwrap();
    ready(&third, admin).await.unwrap();
    // Deployed again, it has to be judged again before it may be chosen again.
    world.judge(&a, "True").await;
    world.deploy("payments", "d", "True").await;
    let last = world.roll_back(&named("last", rollback("payments", Backend::Noop))).await.unwrap();
    assert_eq!(world.ended(&last).await.0, Ok(()), "{}", third.log());
    // An orderly end frees the lease at once.
    third.terminate().unwrap();
    assert_eq!(third.wait(TAKE_OVER).await.unwrap(), Exit::Code(0), "{}", third.log());
    let lease = soon("the lease to be free", || async {
        let leases: kube::Api<k8s_openapi::api::coordination::v1::Lease> =
            kube::Api::namespaced(world.client.clone(), "rollback-system");
        Ok(leases.list(&kube::api::ListParams::default()).await?.items)
    })
    .await;
    let holder = lease[0].spec.as_ref().and_then(|spec| spec.holder_identity.clone()).unwrap_or_default();
    assert_eq!(holder, "");
}
