//! Processes of the real world: their timers, their wake-ups from other threads, their names and ends. (Wake-ups of a
//! thread asleep in its ring are tested beside the ring.)

use std::sync::Arc;

use rand_xoshiro::rand_core::RngCore;
use spindle_io::Env;
use spindle_io::real::{RealEnv, block_on};
use spindle_io::sync::{Elapsed, mpsc, oneshot, timeout};

const MILLISECOND: u64 = 1_000_000;

#[test]
fn sleeps_end_in_order_and_not_early() {
    let env = RealEnv::new(1);
    let began = env.now();
    let slept = block_on({
        let env = Arc::clone(&env);
        async move {
            env.sleep(0).await;
            let never = env.sleep(u64::MAX);
            let late = timeout(&*env, 5 * MILLISECOND, never).await;
            assert_eq!(late, Err(Elapsed));
            timeout(&*env, 3_600_000 * MILLISECOND, env.sleep(5 * MILLISECOND))
                .await
                .unwrap();
            env.now()
        }
    });
    assert!(slept - began >= 10 * MILLISECOND);
}

#[test]
fn a_process_runs_under_its_name_and_its_end_is_heard_of() {
    let env = RealEnv::new(1);
    let (sender, receiver) = oneshot::channel();
    let join = env.spawn(
        "DBW0",
        Box::new(move || {
            Box::pin(async move {
                sender
                    .send(std::thread::current().name().map(str::to_owned))
                    .unwrap();
            })
        }),
    );
    assert_eq!(block_on(receiver).unwrap().as_deref(), Some("DBW0"));
    assert_eq!(block_on(join.ended()), Ok(()));
    let join = env.spawn(
        "CKPT",
        Box::new(|| Box::pin(async { panic!("planned by a test") })),
    );
    assert!(block_on(join.ended()).is_err());
}

#[test]
fn streams_of_random_numbers_are_the_seeds() {
    let draw = |seed, stream| RealEnv::new(seed).rng(stream).next_u64();
    assert_eq!(draw(7, 1), draw(7, 1));
    assert_ne!(draw(7, 1), draw(7, 2));
    assert_ne!(draw(7, 1), draw(8, 1));
}

#[test]
fn messages_between_threads_are_never_missed() {
    const MESSAGES: u64 = 20_000;
    let env = RealEnv::new(1);
    let (there, mut inbox) = mpsc::unbounded_channel();
    let (back, mut outbox) = mpsc::unbounded_channel();
    let join = env.spawn(
        "echo",
        Box::new(move || {
            Box::pin(async move {
                while let Some(message) = inbox.recv().await {
                    back.send(message).unwrap();
                }
            })
        }),
    );
    block_on(async move {
        for message in 0..MESSAGES {
            there.send(message).unwrap();
            assert_eq!(outbox.recv().await, Some(message));
        }
        drop(there);
        join.ended().await.unwrap();
    });
}
