//! The server, from its flags to its end.

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
use crate::desks::{Desks, EXPLAIN_TIMES};
use crate::folders::Folders;
use crate::lake::Fleet;
use crate::listen::Socket;
use crate::live::Live;
use crate::memo::Memo;
use crate::note_store::Notes;
use crate::server::{Server, Shared};
use crate::shelf::{self, Shelf};
use crate::sql_program::Sql;
use crate::token::Token;
use crate::{app, assets, confine, listen};

/// Between two looks whether somebody said stop.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// For answers under way when the server ends.
const GRACE: Duration = Duration::from_secs(2);
const SSH_PORT: &str = "22";

/// Serves the recordings of the flags until somebody says stop; `command_line` reads what is asked.
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
    let places = shelf::places(&args.recordings)?;
    let socket = Socket::bind(&args.listen, args.port)?;
    // On a thread that may: this one may not any more when the server ends.
    let _leaving = socket.leaving();
    // Recording needs what is given up next.
    let (live, recording) = Live::start(&args.recordings, &is_over, talk)?.unzip();
    let room = live.as_ref().map(|live| live.room());
    let is_confined = confine::to(&places, (sql.program(), room), &folders)?;
    // Threads for all work together, confined as this one is.
    let _ = rayon::current_num_threads();
    let cache = folders.cache.as_deref();
    let shelf = Shelf::open(&args.recordings, (cache, live.as_ref()), talk)?;
    say_where(&socket, &token, talk)?;
    let desks = Desks::new(args, &is_over);
    let shared = Arc::new(Server {
        command_line,
        token,
        shelf,
        desk: desks.usual,
        quick: desks.quick,
        slow: desks.slow,
        resident: desks.resident,
        sql,
        fleet,
        notes: Notes::new(folders.state.as_deref()),
        memo: Memo::new(folders.cache.as_deref()),
        is_confined,
    });
    let preparing = prepare(&shared, &is_over);
    let served = serve(socket, shared, &is_over);
    // Whatever ended it, what is built beside ends, too.
    is_over.store(true, Ordering::Relaxed);
    let _ = preparing.join();
    if let Some(recording) = recording {
        let _ = recording.join();
    }
    served
}

/// Builds beside what charts are drawn from, one recording after the other.
fn prepare(shared: &Shared, is_over: &Arc<AtomicBool>) -> JoinHandle<()> {
    let (shared, is_over) = (Arc::clone(shared), Arc::clone(is_over));
    thread::spawn(move || {
        // What is live is shown when it is prepared.
        let books = shared.shelf.books().iter();
        for book in books.filter(|book| !book.is_live()) {
            book.now().prepare(&is_over);
        }
    })
}

/// Until somebody says stop.
fn serve(socket: Socket, shared: Shared, is_over: &Arc<AtomicBool>) -> Result<(), Failure> {
    let failed = |error| Failure::new("failed to serve").caused_by(&error);
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
            tokio::time::sleep(LOOK_EVERY).await;
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

/// The address on standard output, and how to get there on standard error.
fn say_where(socket: &Socket, token: &Token, talk: &TalkArgs) -> Result<(), Failure> {
    let (line, hints) = match socket {
        Socket::Tcp(_, address) => at_port(*address, token),
        Socket::Unix(_, path) => at_path(path, token),
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
            "note: this build has no pages: ./dev ui makes them; programs are answered all the same",
        );
    }
    talk::line("Ctrl-C ends it");
    Ok(())
}

fn at_port(address: SocketAddr, token: &Token) -> (String, Vec<String>) {
    // What stands behind `#` stays in the browser: no log and no proxy has it.
    let line = format!("http://{address}/#token={}", token.text());
    let port = address.port();
    let hints = ssh_hosts()
        .into_iter()
        .map(|host| {
            format!(
                "from your machine, first: ssh -L {port}:{address} {host}\n\
                 then open: http://127.0.0.1:{port}/#token={}",
                token.text()
            )
        })
        .collect();
    (line, hints)
}

fn at_path(path: &Path, token: &Token) -> (String, Vec<String>) {
    let shown = quoted(&path.display().to_string());
    let line = format!("unix:{shown} token={}", token.text());
    let mut hints = vec![format!(
        "ask it: curl --unix-socket {shown} -H 'Authorization: Bearer {}' http://localhost/api/v1/recordings",
        token.text()
    )];
    hints.extend(ssh_hosts().into_iter().map(|host| {
        format!(
            "from your machine: ssh -L 7000:{shown} {host}, then open http://127.0.0.1:7000/#token={}",
            token.text()
        )
    }));
    (line, hints)
}

/// How ssh came here, if it did.
fn ssh_hosts() -> Option<String> {
    let connection = std::env::var("SSH_CONNECTION").ok()?;
    let mut words = connection.split_whitespace().skip(2);
    let (host, port) = (words.next()?, words.next()?);
    let user = std::env::var("USER").ok().filter(|user| !user.is_empty());
    let user = user.map_or_else(String::new, |user| format!("{user}@"));
    let port = match port {
        SSH_PORT => String::new(),
        port => format!("-p {} ", quoted(port)),
    };
    Some(format!("{port}{}", quoted(&format!("{user}{host}"))))
}
