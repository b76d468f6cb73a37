<?php

/** Changes of a request to its own superglobals. */

declare(strict_types=1);

return [
    'leak' => static function (): void {
        $_GET['dirt'] = $_POST['dirt'] = $_COOKIE['dirt'] = $_REQUEST['dirt'] = $_FILES['dirt'] = 1;
        $_SERVER['DIRT'] = 1;
    },
    'look' => static fn () => [
        isset($_GET['dirt']), isset($_POST['dirt']), isset($_COOKIE['dirt']),
        isset($_REQUEST['dirt']), isset($_FILES['dirt']), isset($_SERVER['DIRT']),
    ],
    'resident' => 'reset',
];
