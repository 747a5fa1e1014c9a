use super::*;

const CLASS: &str = "java.util.concurrent.locks.ReentrantLock$NonfairSync";

/// A wait of a thread for the lock at this address, which another thread holds.
fn wait(id: i64, (ts, ts_end): (Ns, Ns), utid: i64, address: &str, holder: i64) -> Wait {
    Wait {
        id,
        ts,
        ts_end,
        utid,
        kind: "library_lock".to_owned(),
        lock: CLASS.to_owned(),
        which: which(Some(address), Some(CLASS), Some("a.Log.append")),
        holder,
        is_selected: true,
        ..Wait::default()
    }
}

#[test]
fn locks_of_one_class_are_told_apart_by_address_or_else_by_whose_code_takes_them() {
    let of = |lock, object, function| which(Some(lock), Some(object), Some(function));
    assert_ne!(
        of("7f01", CLASS, "a.Log.append"),
        of("7f02", CLASS, "a.Log.append")
    );
    assert_eq!(
        of("7f01", CLASS, "a.Log.append"),
        of("7f01", CLASS, "a.Log.read")
    );
    assert_ne!(
        of(CLASS, CLASS, "a.Log.append"),
        of(CLASS, CLASS, "a.Index.get")
    );
    assert_eq!(
        of(CLASS, CLASS, "a.Log.append"),
        of(CLASS, CLASS, "a.Log.read")
    );
    assert_eq!(
        which(Some("7f01"), None, None),
        which(Some("7f01"), None, None)
    );
}

#[test]
fn nothing_goes_from_hand_to_hand_where_the_locks_are_two() {
    // 2 and 3 wait for a lock that 1 holds, while 1 waits for another lock, held by 2.
    let made = |other: &str| {
        [
            wait(1, (0, 100), 2, "7f01", 1),
            wait(2, (0, 100), 3, "7f01", 1),
            wait(3, (100, 200), 1, other, 2),
        ]
    };
    assert_eq!(convoys::found(&made("7f01")).len(), 1);
    assert!(convoys::found(&made("7f02")).is_empty());
}

#[test]
fn who_waits_beside_is_counted_once_each_and_for_the_same_lock() {
    let waits = [
        wait(1, (0, 1000), 2, "7f01", 1),
        wait(2, (10, 300), 3, "7f01", 1),
        wait(3, (310, 600), 3, "7f01", 1),
        wait(4, (20, 900), 4, "7f02", 1),
    ];
    let chains = Finding::of(&waits).chains();
    let found: Vec<(usize, usize)> = chains
        .iter()
        .map(|chain| (chain.links[0], chain.waiters))
        .collect();
    assert_eq!(found, [(0, 1), (3, 0)]);
}

#[test]
fn waits_that_one_dump_shows_have_its_moment_in_common() {
    let waits = [
        wait(1, (50, 50), 2, "7f01", 1),
        wait(2, (50, 50), 3, "7f01", 1),
        wait(3, (50, 50), 1, "7f02", 4),
    ];
    let chains = Finding::of(&waits).chains();
    assert_eq!(chains[0].links, [0, 2]);
    assert_eq!(chains[0].waiters, 1);
}
