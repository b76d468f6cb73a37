<?php

declare(strict_types=1);

$_SESSION['n'] = ($_SESSION['n'] ?? 0) + 1;
echo session_status(), ' ', $_SESSION['n'];
