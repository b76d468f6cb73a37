<?php

declare(strict_types=1);

return [
    'alpha_dash' => ':attribute hat falsche Zeichen.',
    'array' => ':attribute muss eine Liste sein.',
    'confirmed' => ':attribute ist nicht bestätigt.',
    'email' => ':attribute ist keine Adresse.',
    'integer' => ':attribute muss eine Zahl sein.',
    'max' => ['string' => ':attribute ist zu groß.', 'file' => ':attribute ist zu groß.'],
    'mimes' => ':attribute muss :values sein.',
    'min' => ['string' => ':attribute ist kürzer als :min Zeichen.'],
    'required' => ':attribute fehlt.',
    'unique' => ':attribute ist vergeben.',
    'uploaded' => ':attribute kam nicht an.',
];
