<?php

// Compiled first by a request.
return [PHP_SAPI, php_sapi_name(), defined('STDIN'), constant('PHP_SAPI')];
