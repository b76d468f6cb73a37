<?php

/**
 * Relative includes are resolved from the script's folder, and from the folder of the including
 * file.
 */

declare(strict_types=1);

echo basename(getcwd()), ' ', basename(__DIR__), "\n";
echo include '../returns.php', "\n";
chdir('..');
echo include './returns.php', "\n";
echo include 'neighbour.php';
