//! The lifetime of the server.

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::sync::watch;
use whyslow_base::args::TalkArgs;
use whyslow_base::failure::Failure;
use whyslow_base::{interrupt, talk};
use whyslow_render::quoted;

use crate::args::ServeArgs;
use crate::command_line::CommandLine;
use crate::folders::Folders;
use crate::lake::Fleet;
use crate::listen::Socket;
use crate::live::Live;
use crate::memo::Memo;
use crate::note_store::Notes;
use crate::query_queues::{EXPLAIN_TIMES, QueryQueues};
use crate::recording_set::{self, RecordingSet};
use crate::server::{Server, Shared};
use crate::sql_program::Sql;
use crate::token::Token;
use crate::{app, assets, confine, listen, ssh};

/// Interval of the check for an interruption.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// For responses in progress when the server shuts down.
const GRACE: Duration = Duration::from_secs(2);

/// Serves recordings until it is interrupted; `command_line` parses requests.
pub fn run(
    args: &ServeArgs,
    talk: &TalkArgs,
    command_line: Box<dyn CommandLine>,
) -> Result<(), Failure> {
    let is_over = interrupt::flag()?;
    let folders = Folders::of_user();
    let sql = Sql::find();
    let fleet = Fleet::start(
        args.lake.as_deref(),
        &args.engine,
        args.query_time.saturating_mul(EXPLAIN_TIMES),
    )?;
    let token = Token::new(args.token_file.as_deref())?;
    let places = recording_set::places(&args.recordings)?;
    let socket = Socket::bind(&args.listen, args.port)?;
    // On an unconfined thread: this one will not be allowed to remove the socket.
    let _cleanup = socket.cleanup();
    // Recording needs the privileges that are dropped next.
    let (live, recording) = Live::start(&args.recordings, &is_over, talk)?.unzip();
    let live_folder = live.as_ref().map(|live| live.folder());
    // The processes above this one can no longer be read once it is confined.
    let ssh_target = ssh::target();
    let is_confined = confine::to(&places, (sql.program(), live_folder), &folders)?;
    // Start the worker threads now, so that they are confined like this one.
    let _ = rayon::current_num_threads();
    let cache = folders.cache.as_deref();
    let recordings = RecordingSet::open(&args.recordings, (cache, live.as_ref()), talk)?;
    print_address(&socket, &token, ssh_target.as_deref(), talk)?;
    let queues = QueryQueues::new(args, &is_over);
    let shared = Arc::new(Server {
        command_line,
        token,
        recordings,
        queue: queues.usual,
        quick: queues.quick,
        slow: queues.slow,
        resident: queues.resident,
        sql,
        fleet,
        notes: Notes::new(folders.state.as_deref()),
        memo: Memo::new(folders.cache.as_deref()),
        is_confined,
    });
    let preparing = prepare(&shared, &is_over);
    let served = serve(socket, shared, &is_over);
    // Stop building charts, whatever ended the server.
    is_over.store(true, Ordering::Relaxed);
    let _ = preparing.join();
    if let Some(recording) = recording {
        let _ = recording.join();
    }
    served
}

/// Builds the data for charts in the background, one recording after the other.
fn prepare(shared: &Shared, is_over: &Arc<AtomicBool>) -> JoinHandle<()> {
    let (shared, is_over) = (Arc::clone(shared), Arc::clone(is_over));
    thread::spawn(move || {
        // A live recording is prepared before it is shown.
        let served = shared.recordings.all().iter();
        for served in served.filter(|served| !served.is_live()) {
            served.now().prepare(&is_over);
        }
    })
}

/// Runs until it is interrupted.
fn serve(socket: Socket, shared: Shared, is_over: &Arc<AtomicBool>) -> Result<(), Failure> {
    let failed = |error| Failure::new("cannot serve").caused_by(&error);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .thread_name("serve")
        .enable_all()
        .build()
        .map_err(failed)?;
    let (end, ends) = watch::channel(false);
    let is_over = Arc::clone(is_over);
    let served = runtime.block_on(async move {
        let serving = tokio::spawn(listen::serve(socket, app::router(shared), ends.clone()));
        while !is_over.load(Ordering::Relaxed) && !serving.is_finished() {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        let _ = end.send(true);
        match serving.await {
            Ok(served) => served,
            Err(panic) => Err(std::io::Error::other(panic)),
        }
    });
    runtime.shutdown_timeout(GRACE);
    served.map_err(failed)
}

/// Prints the address to standard output, and instructions for connecting to standard error.
fn print_address(
    socket: &Socket,
    token: &Token,
    ssh_target: Option<&str>,
    talk: &TalkArgs,
) -> Result<(), Failure> {
    let (line, hints) = match socket {
        Socket::Tcp(_, address) => at_port(*address, token, ssh_target),
        Socket::Unix(_, path) => at_path(path, token, ssh_target),
    };
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{line}")?;
    stdout.flush()?;
    if talk.quiet {
        return Ok(());
    }
    for hint in hints {
        talk::line(&hint);
    }
    if !assets::are_there() {
        talk::line(
            "note: web pages unavailable: not part of this build (build them with ./dev ui); the HTTP API works",
        );
    }
    talk::line("press Ctrl-C to stop");
    Ok(())
}

fn at_port(address: SocketAddr, token: &Token, ssh_target: Option<&str>) -> (String, Vec<String>) {
    // Browsers do not send the part after `#`: it reaches no log and no proxy.
    let line = format!("http://{address}/#token={}", token.text());
    let port = address.port();
    let hints = ssh_target
        .into_iter()
        .map(|host| {
            format!(
                "on your machine, first run: ssh -L {port}:{address} {host}\n\
                 then open: http://127.0.0.1:{port}/#token={}",
                token.text()
            )
        })
        .collect();
    (line, hints)
}

fn at_path(path: &Path, token: &Token, ssh_target: Option<&str>) -> (String, Vec<String>) {
    let shown = quoted(&path.display().to_string());
    let line = format!("unix:{shown} token={}", token.text());
    let mut hints = vec![format!(
        "try: curl --unix-socket {shown} -H 'Authorization: Bearer {}' http://localhost/api/v1/recordings",
        token.text()
    )];
    hints.extend(ssh_target.into_iter().map(|host| {
        format!(
            "on your machine run: ssh -L 7000:{shown} {host}, then open http://127.0.0.1:7000/#token={}",
            token.text()
        )
    }));
    (line, hints)
}
