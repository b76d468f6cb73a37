<?php

declare(strict_types=1);

echo ini_get('display_errors'), ';', ini_get('memory_limit'), ';', ini_get('upload_max_filesize'), ";\n";
echo json_encode(array_map(fn ($file) => [$file['error'], $file['size']], $_FILES)), "\n";
if (isset($_GET['fatal'])) {
    undefined_function();
}
