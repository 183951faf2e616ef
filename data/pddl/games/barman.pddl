; Two hands fill shot glasses from dispensers and mix cocktails in a shaker.
(define (domain barman)
  (:types
    hand level dispenser beverage container - object
    ingredient cocktail - beverage
    shot shaker - container)
  (:predicates
    (ontable ?container - container)
    (holding ?hand - hand ?container - container)
    (handempty ?hand - hand)
    (empty ?container - container)
    (contains ?container - container ?beverage - beverage)
    (clean ?container - container)
    (used ?container - container ?beverage - beverage)
    (shaker-level ?shaker - shaker ?level - level)
    (unshaked ?shaker - shaker)
    (shaked ?shaker - shaker)
    (dispenses ?dispenser - dispenser ?ingredient - ingredient)
    (cocktail-part1 ?cocktail - cocktail ?ingredient - ingredient)
    (cocktail-part2 ?cocktail - cocktail ?ingredient - ingredient)
    (shaker-empty-level ?shaker - shaker ?level - level)
    (next ?level ?higher - level))

  (:action grasp
    :parameters (?hand - hand ?container - container)
    :precondition (and (handempty ?hand) (ontable ?container))
    :effect (and (holding ?hand ?container) (not (handempty ?hand)) (not (ontable ?container))))
  (:action leave
    :parameters (?hand - hand ?container - container)
    :precondition (holding ?hand ?container)
    :effect (and (ontable ?container) (handempty ?hand) (not (holding ?hand ?container))))

  ; Shots: the other hand works the dispenser or the cloth.
  (:action fill-shot
    :parameters (?shot - shot ?ingredient - ingredient ?hand ?other - hand ?dispenser - dispenser)
    :precondition (and (dispenses ?dispenser ?ingredient) (holding ?hand ?shot) (handempty ?other)
                       (empty ?shot) (clean ?shot))
    :effect (and (contains ?shot ?ingredient) (used ?shot ?ingredient) (not (empty ?shot)) (not (clean ?shot))))
  (:action refill-shot
    :parameters (?shot - shot ?ingredient - ingredient ?hand ?other - hand ?dispenser - dispenser)
    :precondition (and (dispenses ?dispenser ?ingredient) (holding ?hand ?shot) (handempty ?other)
                       (empty ?shot) (used ?shot ?ingredient))
    :effect (and (contains ?shot ?ingredient) (not (empty ?shot))))
  (:action empty-shot
    :parameters (?hand - hand ?shot - shot ?beverage - beverage)
    :precondition (and (holding ?hand ?shot) (contains ?shot ?beverage))
    :effect (and (empty ?shot) (not (contains ?shot ?beverage))))
  (:action clean-shot
    :parameters (?shot - shot ?beverage - beverage ?hand ?other - hand)
    :precondition (and (holding ?hand ?shot) (handempty ?other) (empty ?shot) (used ?shot ?beverage))
    :effect (and (clean ?shot) (not (used ?shot ?beverage))))

  ; The shaker: two ingredients, one after the other, then shaken with a free hand.
  (:action pour-shot-to-clean-shaker
    :parameters (?shot - shot ?ingredient - ingredient ?shaker - shaker ?hand - hand ?level ?higher - level)
    :precondition (and (next ?level ?higher) (holding ?hand ?shot) (contains ?shot ?ingredient)
                       (empty ?shaker) (clean ?shaker) (shaker-level ?shaker ?level))
    :effect (and (contains ?shaker ?ingredient) (unshaked ?shaker) (empty ?shot) (shaker-level ?shaker ?higher)
                 (not (contains ?shot ?ingredient)) (not (empty ?shaker)) (not (clean ?shaker))
                 (not (shaker-level ?shaker ?level))))
  (:action pour-shot-to-used-shaker
    :parameters (?shot - shot ?ingredient - ingredient ?shaker - shaker ?hand - hand ?level ?higher - level)
    :precondition (and (next ?level ?higher) (holding ?hand ?shot) (contains ?shot ?ingredient)
                       (unshaked ?shaker) (shaker-level ?shaker ?level))
    :effect (and (contains ?shaker ?ingredient) (empty ?shot) (shaker-level ?shaker ?higher)
                 (not (contains ?shot ?ingredient)) (not (shaker-level ?shaker ?level))))
  (:action empty-shaker
    :parameters (?hand - hand ?shaker - shaker ?cocktail - cocktail ?level ?lowest - level)
    :precondition (and (shaker-empty-level ?shaker ?lowest) (holding ?hand ?shaker) (contains ?shaker ?cocktail)
                       (shaked ?shaker) (shaker-level ?shaker ?level))
    :effect (and (empty ?shaker) (shaker-level ?shaker ?lowest) (not (contains ?shaker ?cocktail))
                 (not (shaked ?shaker)) (not (shaker-level ?shaker ?level))))
  (:action clean-shaker
    :parameters (?hand ?other - hand ?shaker - shaker)
    :precondition (and (holding ?hand ?shaker) (handempty ?other) (empty ?shaker))
    :effect (clean ?shaker))
  (:action shake
    :parameters (?cocktail - cocktail ?first ?second - ingredient ?shaker - shaker ?hand ?other - hand)
    :precondition (and (cocktail-part1 ?cocktail ?first) (cocktail-part2 ?cocktail ?second)
                       (holding ?hand ?shaker) (handempty ?other) (unshaked ?shaker)
                       (contains ?shaker ?first) (contains ?shaker ?second))
    :effect (and (contains ?shaker ?cocktail) (shaked ?shaker) (not (unshaked ?shaker))
                 (not (contains ?shaker ?first)) (not (contains ?shaker ?second))))
  (:action pour-shaker-to-shot
    :parameters (?beverage - beverage ?shot - shot ?hand - hand ?shaker - shaker ?level ?lower - level)
    :precondition (and (next ?lower ?level) (holding ?hand ?shaker) (shaked ?shaker) (contains ?shaker ?beverage)
                       (empty ?shot) (clean ?shot) (shaker-level ?shaker ?level))
    :effect (and (contains ?shot ?beverage) (shaker-level ?shaker ?lower) (not (empty ?shot)) (not (clean ?shot))
                 (not (shaker-level ?shaker ?level)))))
