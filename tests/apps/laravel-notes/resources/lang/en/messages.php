<?php

declare(strict_types=1);

return [
    'greeting' => 'Good day',
    'home' => 'Home',
    'visits' => '{1} You are here for the first time.|[2,*] You have been here :count times.',
    'since' => 'Open since :day.',
    'welcome' => 'Welcome, :name!',
    'bye' => 'Good bye.',
    'failed' => 'These credentials are wrong.',
    'stored' => 'Stored “:title”.',
    'changed' => 'Changed.',
    'deleted' => 'Deleted.',
    'none' => 'No notes yet.',
];
