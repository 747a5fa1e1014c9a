<?php
// Sleeps as if it waited for another service.
usleep(1000 * (int) $_GET['ms']);
echo "reported\n";
