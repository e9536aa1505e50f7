//! Starts rayon's global thread pool with as many threads as the system grants.
//!
//! If rayon cannot start every thread of its global pool, it panics, and no later start can succeed. So this module
//! starts the threads one by one and hands the running ones to rayon. Other threads of the crate start in the same way.

use std::{
    env, io,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, channel, sync_channel},
    },
    thread,
};

use rayon::{ThreadBuilder, ThreadPoolBuilder};

use crate::memory;

/// Bytes that a thread may take before it runs: its stack, and a stack for signal handlers. If the signal stack cannot
/// be allocated, the standard library ends the process.
const THREAD_BYTES: usize = 4 << 20;

/// Returns whether rayon has threads. Without threads, its calls would panic.
///
/// A call from within a pool stays in that pool. A global pool that the program has made is used unchanged.
pub(crate) fn ready() -> bool {
    rayon::current_thread_index().is_some() || global()
}

/// Returns whether there is a global pool. If no thread could be started, the next call tries again.
fn global() -> bool {
    static READY: AtomicBool = AtomicBool::new(false);
    static STARTING: Mutex<()> = Mutex::new(());
    if READY.load(Ordering::Acquire) {
        return true;
    }
    let _starting = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
    if !READY.load(Ordering::Acquire) {
        READY.store(start(), Ordering::Release);
    }
    READY.load(Ordering::Acquire)
}

/// Number of threads in rayon's default pool.
fn wanted() -> usize {
    let asked = env::var("RAYON_NUM_THREADS").ok().and_then(|text| text.parse().ok()).filter(|&count| count > 0);
    let count = asked.or_else(|| thread::available_parallelism().ok().map(usize::from)).unwrap_or(1);
    count.min(rayon::max_num_threads())
}

fn start() -> bool {
    let (sender, receiver) = channel();
    let receiver = Arc::new(Mutex::new(receiver));
    let count = (0..wanted()).take_while(|_| spawn(&receiver)).count();
    if count == 0 {
        return false;
    }
    let hand_over = |thread| sender.send(thread).map_err(|_| io::Error::other("the threads have ended"));
    // `build_global` fails if the program has a global pool of its own. Dropping the sender then ends the threads.
    let _ = ThreadPoolBuilder::new().num_threads(count).spawn_handler(hand_over).build_global();
    true
}

/// Starts a thread that runs one worker from `receiver`. Waits until the thread runs, and returns whether it does.
fn spawn(receiver: &Arc<Mutex<Receiver<ThreadBuilder>>>) -> bool {
    let receiver = receiver.clone();
    start_thread(thread::Builder::new(), move || {
        let worker = receiver.lock().unwrap_or_else(PoisonError::into_inner).recv();
        if let Ok(worker) = worker {
            worker.run();
        }
    })
}

/// Starts a thread of this name that runs `body`. Waits until the thread runs, and returns whether it does.
#[cfg(feature = "opencl")]
pub(crate) fn start_named(name: &str, body: impl FnOnce() + Send + 'static) -> bool {
    start_thread(thread::Builder::new().name(name.into()), body)
}

fn start_thread(builder: thread::Builder, body: impl FnOnce() + Send + 'static) -> bool {
    if memory::probe(THREAD_BYTES).is_err() {
        return false;
    }
    let (running, run) = sync_channel(1);
    let body = move || {
        let _ = running.send(());
        body();
    };
    builder.spawn(body).is_ok() && run.recv().is_ok()
}
