//! Words that identify nothing: parts of names that occur on many systems.
//!
//! Everything else is replaced. A missing word costs readability, but a wrong one would reveal a
//! secret: no names of people, products or service companies are in this list.

use std::sync::LazyLock;

use rustc_hash::FxHashSet;

/// Whether a word of letters stays, regardless of case.
pub(super) fn is_public(word: &str) -> bool {
    is_in(&WORDS, word)
}

/// The same for words in host names.
pub(super) fn is_public_label(word: &str) -> bool {
    is_in(&LABELS, word)
}

fn is_in(words: &FxHashSet<&str>, word: &str) -> bool {
    if word.bytes().any(|byte| byte.is_ascii_uppercase()) {
        words.contains(word.to_ascii_lowercase().as_str())
    } else {
        words.contains(word)
    }
}

static WORDS: LazyLock<FxHashSet<&str>> = LazyLock::new(|| ALL.split_whitespace().collect());
static LABELS: LazyLock<FxHashSet<&str>> =
    LazyLock::new(|| ALL_LABELS.split_whitespace().collect());

/// Directories, files and their extensions, programs of base systems, words of kernels.
const ALL: &str = "\
    a aab aarch ab abi abrt access account accounts acct acpi active ad addr adjtime admin agent \
    agents aio alpine alternatives amd amzn anaconda analysis and anon anonymous any apache api \
    apk app apparmor apps apt aptitude ar arch archive archives are args arm armhf arp as asc asm \
    assets async at atop attempts attr attributes audit auditd auth auto autofs automount avro awk \
    aws azure back backup backups bak barrier base bash bashrc bat bcache be bench besteffort bin \
    binary bind bios blk blkid blksize block blocks bmp body bond boot bpf br bridge brk bson \
    btrfs buffer bug build builds bundle burstable bus busctl buster by bytecode bz bzip c ca \
    cache cachegrind caches callgrind cargo cat cc cdev cdrecord cdrom centos cert certs cfg \
    cgexec cgi cgroup ch chained char charset check chroot chrt chunk chunks ci cifs cksum clang \
    class classes classpath clean client clientaddr clients cloud cluster cmake cmd cmdline cn cni \
    code codec codepage collation collect collections com comm command commands commit common \
    compat compile completion compose conf config configs configure connect console const \
    container containerd containers content continue contrib control copy core cores cos count \
    coverage cpp cpu cpus cpuset crate crates create cred cri crio crl cron crontab crontabs crt \
    crypt crypto cs csr css csv ctl ctrl ctypes cur curl current curses custom cxx cz d daemon \
    daily dash data database databases date datetime db dbench dbus dconf dd de deb debconf debian \
    debug deep def default defaults delta demo dep deps der desktop dest dev devel device devices \
    df dhclient dhcp diag dict diff dig dir dircolors direct dirs discard disk disks dispatch dist \
    dk dm dmask dmesg dmsetup dnf dns doc docker dockerd docs document documents docx domain done \
    down download downloads dpkg draft drbd driver drivers drop dry dsa dump dumps dup dynamic \
    dynload e ea ec ed edit editor edns efi efs egg eglibc egrep el elf elfutils emacs embed empty \
    en enc encoding encodings end endpoint engine eni enp ens ensurepip env environment eot err \
    errno error errors es etc eth ethtool eu event eventfd eventpoll events ex example examples \
    exe exec exim exit exp export exports ext extension extensions external extra f fail failed \
    false fast fc fd fdinfo fdisk fds feature features fedora fgrep fi field fields file files \
    filter filters final find finger fingerprint fio firewall firmware flag flags flannel flat \
    flock flow flush flusher fmask fmt folder folders font fontconfig fonts foot for force fork \
    form format fpm fr frame free freedesktop freezer freq from fs fsck fstab ftp full func \
    function functions fuse g gai gawk gb gcc gconv gcp gdb gdbinit gdbm gem gen general generated \
    generic gentoo gesture get gettext getty gid gif git gitconfig github gitignore gitlab \
    gitmodules glib glibc global glusterfs gmon gnome gnu gnupg gnutls go gold gpg gpt gpu gr \
    gradle grafana graph grep group groups grp grpquota grub gshadow guaranteed guest guid gunzip \
    gz gzip h had handler haproxy hard has hash have hdr head header headers health heap help \
    helper helpers hesiod hex hey hidden hidepid hints history home hook hooks host hostid \
    hostname hostnamectl hosts hourly hpp htm html htop http httpd https hu hub huge hugepages \
    hugetlb hwcaps hwdb hypervisor i icmp ico icon icons icu id idle idna idx ie ifcfg ifconfig \
    ifindex image images imap img import importlib in inactive inbox inc incident include includes \
    incoming incremental index indexes inet inetd inf info init initctl initramfs initrd inittab \
    inode inodes inotify input inputrc install installed instance instances int integration \
    interface interfaces internal interp invalid io iocharset ionice iostat iozone ip ipa ipc \
    iptables iptraf ipv irq irqbalance is iscsi iso issue it item items j jar java javascript jbd \
    jdk jemalloc job jobs join journal journalctl journald jp jpeg jpg jre js json jsonl jvm k \
    kafka kbd kcompactd kdb kdump kernel kernels key keyboard keyring keyrings keys keytab \
    khugepaged kill killall kmod kmsg ko kr krb ksoftirqd kswapd kthreadd kube kubelet kubepods \
    kubernetes kvm kworker l lang language languages last lastlog latest layer layers ld ldap \
    ldconfig ldd leap legacy less lesspipe level lib libc libcrypto libcurl libdl libexec libgcc \
    libgomp libjemalloc libjvm libm libnss libphp libpod libpthread libpython libraries library \
    libresolv librt libs libselinux libssl libstdc libsystemd libtinfo libutil libz license \
    licenses lighttpd limits line link links linux linuxthreads list lists live ll llvm lo load \
    loader local locale locales localhost localtime lock locks log logbsize logbufs logger login \
    logind logrotate logs logstash losetup lost lower lowerdir lowlatency lsb lsblk lscpu lsof \
    lspci lsusb lto ltrace lttng lua lvm lvs lxc lxd lz lzma lzo m machine machinectl macros magic \
    mail mailcap main maintenance major make makefile malloc man manager manifest manifests map \
    mapper mapping mappings maps mariadb master maxproto mbox md mdadm mdns media mem member \
    members memcached memfd memory menu merged message messages meta metadata metainfo metrics \
    mgmt micro migrate migration migrations mime min mingw minimal minor minproto mirror mirrors \
    misc mjs mk mkdir mkfs mkswap mmc mnt mod mode model models modes modified modinfo \
    modprobe module modules mon mongo mongod mongodb monitor mono monthly more mount mountaddr \
    mountinfo mountpoint mountport mountproto mounts mountvers mozilla mp mpm mqueue mr msg msgs \
    mtab mtrr multi multiarch multipath multiprocessing musl mutex mv my mydumper myhostname \
    mymachines mysql mysqld n name named names nameserver namlen nano native nc ndjson ndots net \
    netconfig netfilter netlink netns netplan netrc netstat network networkd networks new nfs nfsd \
    nginx nice nis nl nls nm nmap no noatime nobarrier nobody node nodejs nodes nodev noexec \
    nofile nohup nologin none noop noquota normal nosuid not note notes notfound notify nouser npm \
    nproc npy npz nscd nsdelegate nslookup nss nsswitch ntfs ntp ntpd ntpdate null num numa nvme o \
    obj objdump object objects odb odp ods odt oem of office oha ok old on oneshot oom open \
    openjdk openssl opensuse opt optimized option options or orc order ordered org orig os other \
    out outcome outgoing output outputs overlay overlayfs overlays override owner p pack package \
    packages page pagemap pages pam panic param params parent parquet part parted partial \
    partition partitions parts pass passwd patch patchelf patches path paths pause payload pc pci \
    pdf peer pem pending perf perl perm permissions persist persistent personality pg pgbench \
    pgdata pgrep pgrp php pic pickle pid pidfile pidns pidof pids pidstat ping pip pipe pivot pkg \
    pkgcache pkgs pki pkill pkl pl plain plan plane plugin plugins plymouth pm pmap png pod podman \
    pods point poll pom pool pools pop port ports pos posix post postfix postgres postgresql power \
    ppp ppt pptp pptx preempt prefix preload preset prev print printenv printer priority private \
    privileged prjquota probe proc process processes procps prod product production profile \
    profiles prog program programs project projects prometheus properties property proto protocol \
    protocols provider proxy ps psi pstore pt ptmx pts pty pub public pull pulse push put pve pvs \
    pwd pwdx py pyc pycache pyenv pyo pyproject pypy pytest python pytz q qcow qemu qt query queue \
    queues quota quotas r rabbitmq raid ram random range raspi raw rb rbd rc rcgu rcs rdma read \
    readahead readelf reader readline readlink readme ready reboot rebuild rec recent record \
    records recover recovery redhat redis ref refs reg regex region registry reject relatime \
    relation relative release releases reload remote remount remove removed rename render renice \
    reopen replica repo repodata report reports repos repositories repository req request requests \
    requirements res reserve reset resize resizefs resolv resolvconf resolve resolved resolver \
    resource resources response rest restart restore result results resume ret retrans retry \
    return rev rfkill rhel ring rlib rm rmdir rmeta ro role roles root rootfs rotate route router \
    routes rpc rpcbind rpi rpm rs rsa rsize rss rsync rsyslog rt rtc ru ruby rule rules run runc \
    runlevel runner running runtime rust rustc rustlib rustup rw s sadf samba sample samples \
    sandbox sar sas sasl sata save saved sbin scan sccache scenario sched scheduler schema schemas \
    scope screen script scripts scsi sd sda sdb sdc sdd sdk se search sec seccomp secondary \
    section security sed seed segment segments select self selinux sem send sendmail sensible seq \
    serial series server servers service services sess session sessions set sets settings setup \
    sfdisk sftp sg sgml sh sha shadow share shared sharun shell shells shm short shortname show \
    shutdown sid sig signal signalfd signals simple single site sites size sk skel slab slapd \
    slave sleep sles slice slices sln small smaps smb smbd smp smtp snap snapd snapshot snapshots \
    snd so soap sock socket sockets soft software solr sort sortlist sound source sources space \
    spack spark spec special specs spl spool sql sqlite sqlx squashfs squid sr src srv ss ssd ssh \
    sshd sshfs ssl sso stable stack stage staging standard start startup stash stat state \
    statedump static statistics statm stats status std stderr stdin stdlib stdout step stop \
    storage store stored strace stream stress string strings stty style styles su sub subgid \
    submit subsystem subuid subvol subvolid success sudo sudoers summary sunit supervisor support \
    suse suspend svc svg svn swap swapoff swapon swaps swidth sy symlink sync syndaemon sys \
    sysbench sysctl sysfs syslog sysroot sysstat system systemctl systemd sysusers sysv t tab \
    table tables tac tag tags tail tainted tap tar target targets task tasks taskset tcp tcpdump \
    tee telnet temp template templates temporary term terminal terminfo test testing tests tex \
    texinfo text tftp tgz than that the theme themes then this thread threads throttle tick time \
    timedatectl timens timeo timeout timer timerfd timers timestamp timesyncd timezone timezones \
    tini tls tm tmp tmpfiles tmpfs tmux to token tomcat toml tool toolchain toolchains tools top \
    topology torrent touch tpl tr trace traceroute tracing trans transactions transparent trash \
    tree trigger triggers true truncate trunk trust trusted tryagain ts tsv tsx ttf tty tun \
    tunables tune tw tx txt type types tz tzdata u ua ubuntu ucf udev udevd udp uevent ufw ui uid \
    uk umask umount uname unavail unicore uninstall uniq unit units unix unknown unlink unshare \
    unstable unzip up update updates upgrade upload uploads upper upperdir uptime urandom url us \
    usb use user useradd userdel userns users usr usrquota utc utf util utilities utils utmp uts \
    uucp uuid uuidd uwsgi v valgrind valid value values var varnish vault vb vc vcpu vcxproj vd \
    vda vdb vdc vdd vdi vegeta vendor verify vers version versions veth vfio vg vgs vhd vhost vi \
    view views vim virbr virt virtio virtual virtualenv vm vmdk vmlinux vmlinuz vms vmstat vmtouch \
    volume volumes voluntary vsock vulkan w wait wal war warn warning warnings was watch watchdog \
    wc web webapp webdav webp weekly were wget what wheel wheels when whereis which whl whoami \
    whyslow wide wifi will win window windows wins with wlan wls woff word work workdir worker \
    workers workload workloads workspace world wrapper write writeback wsgi wsize wsl wtmp www \
    x xargs xattr xauth xen xfs xfsaild xinetd xls xlsx xml xorg xsd xsl xvd xxd xz y yaml yarn \
    yes yml yum z zabbix zd zero zip zlib zone zoneinfo zones zookeeper zram zsh zst zstd \
";

/// Suffixes of host names, and names that every host gives itself.
const ALL_LABELS: &str = "\
    addr allnodes allrouters arpa broadcasthost com dev edu eu gov home in int internal io ip lan \
    local localdomain localhost localnet loopback mcastprefix mil net org \
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_of_small_letters_in_order() {
        for all in [ALL, ALL_LABELS] {
            let words: Vec<&str> = all.split_whitespace().collect();
            assert!(words.is_sorted_by(|a, b| a < b));
            let is_plain = |word: &&str| word.bytes().all(|byte| byte.is_ascii_lowercase());
            assert!(words.iter().all(is_plain));
        }
    }

    #[test]
    fn no_word_looks_like_one_that_stands_for_another() {
        let is_vowel = |byte: u8| b"aeiou".contains(&byte);
        for word in ALL.split_whitespace().filter(|word| word.len() == 10) {
            let alternates = word
                .bytes()
                .enumerate()
                .all(|(place, byte)| is_vowel(byte) == (place % 2 == 1));
            assert!(!alternates, "{word}");
        }
    }

    #[test]
    fn letters_may_be_large() {
        assert!(is_public("README") && is_public("Log") && !is_public("Acme"));
    }
}
