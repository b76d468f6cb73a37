<?php

declare(strict_types=1);

echo ob_get_level(), ";\n";
header('X-Late: 1');
echo headers_sent() ? 'sent' : 'not sent', ";\n";
