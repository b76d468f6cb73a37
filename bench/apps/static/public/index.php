<?php

declare(strict_types=1);

// What no file answers. No request of the workload comes here.
http_response_code(404);
