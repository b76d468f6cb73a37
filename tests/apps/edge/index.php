<?php

declare(strict_types=1);

header('Content-Type: application/json');
http_response_code((int) ($_GET['status'] ?? 200));
if (isset($_GET['getenv'])) {
    echo json_encode(getenv($_GET['getenv']));
    exit;
}
if (isset($_GET['hint'])) {
    header('Link: ' . $_GET['hint']);
    headers_send(103);
}
if (isset($_GET['accel'])) {
    header('X-Accel-Redirect: ' . $_GET['accel']);
}
echo json_encode(array_filter($_SERVER, is_string(...)) + ['body' => file_get_contents('php://input')]);
