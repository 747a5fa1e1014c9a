# A server on a unix socket with a fixed number of worker processes, one connection at a time each.
# A line is the number of rounds of a digest, or `end`. Usage: perl pricing.pl PATH WORKERS
use strict;
use warnings;
use Digest::SHA qw(sha256_hex);
use IO::Socket::UNIX;

my ($path, $workers) = @ARGV;
my $server = IO::Socket::UNIX->new(Local => "$path.new", Listen => 64) or die "$path: $!";
my @pids;
# Workers would outlive this process.
$SIG{TERM} = sub { kill TERM => @pids; exit 0 };
for (1 .. $workers) {
    defined(my $pid = fork) or die "fork: $!";
    if ($pid) {
        push @pids, $pid;
        next;
    }
    $SIG{TERM} = 'DEFAULT';
    while (my $client = $server->accept) {
        while (my $line = <$client>) {
            my $price = "price";
            $price = sha256_hex($price) for 1 .. $line;
            print $client "$price\n";
            $client->flush;
        }
    }
    exit 0;
}
# Clients wait for the path.
rename "$path.new", $path or die "$path: $!";
1 while wait > 0;
