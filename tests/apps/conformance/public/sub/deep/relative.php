<?php

/** Relative includes start at the script's folder, and at the folder of the file that includes. */

declare(strict_types=1);

echo basename(getcwd()), ' ', basename(__DIR__), "\n";
echo include '../returns.php', "\n";
chdir('..');
echo include './returns.php', "\n";
echo include 'neighbour.php';
