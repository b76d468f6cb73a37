<?php

declare(strict_types=1);

echo "script;\n";
if (isset($_GET['exit'])) {
    exit("exit;\n");
}
if (isset($_GET['fatal'])) {
    undefined_function();
}
